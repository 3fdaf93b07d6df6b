package rules

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/memsidecar/memsidecar/internal/decide"
	"github.com/memsidecar/memsidecar/internal/memory"
)

func TestAdhoc(t *testing.T) {
	f := os.Getenv("ADHOC")
	if f == "" {
		t.Skip()
	}
	b, _ := os.ReadFile(f)
	r, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range strings.Split(strings.TrimSpace(string(b)), "\n") {
		var msgs []memory.Message
		for _, part := range strings.Split(l, " || ") {
			m := memory.Message{Role: memory.RoleUser, Speaker: "u", Content: strings.ReplaceAll(part, "\\n", "\n"), Time: time.Unix(0, 0)}
			if a, ok := strings.CutPrefix(part, "A: "); ok {
				m.Role = memory.RoleAssistant
				m.Speaker = ""
				m.Content = a
			}
			msgs = append(msgs, m)
		}
		tr := decide.Transcript{Speaker: "u", Dialogue: memory.Dialogue{Scope: memory.Scope{UserID: "u"}, Messages: msgs}}
		v, _ := r.Decide(context.Background(), tr)
		ss, _ := r.Summarize(context.Background(), tr, v)
		fmt.Println("##", l)
		if !v.Remember {
			fmt.Println("     -", v.Reason)
		}
		for _, s := range ss {
			e := ""
			if s.Explicit {
				e = "!"
			}
			fmt.Printf("     %s[%s %s %.1f]%s  <%s> %s %v\n", s.Text, s.Language, s.Kind, s.Importance, e, s.Quote, s.Reason, s.MessageIDs)
		}
	}
}
