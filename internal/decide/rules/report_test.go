package rules

import (
	"strings"
	"testing"
	"time"

	"github.com/memsidecar/memsidecar/internal/decide"
	"github.com/memsidecar/memsidecar/internal/memory"
)

// TestGivingUpIsNoReport: what somebody says that they no longer do is worth knowing after any answer, although it is worded as a report
// that advice worked.
func TestGivingUpIsNoReport(t *testing.T) {
	r, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	for _, lines := range [][3]string{
		{"我每天喝两杯咖啡，晚上睡不好", "可以少喝一点咖啡试试。", "我不喝咖啡了"},
		{"我吃素", "好的，我会推荐素食餐厅。", "我现在不吃素了"},
		{"I smoke ten cigarettes a day and cough a lot.", "Try to smoke less.", "I no longer smoke cigarettes."},
	} {
		d := memory.Dialogue{Scope: memory.Scope{UserID: "u"}}
		for i, line := range lines {
			m := memory.Message{Role: memory.RoleUser, Speaker: "u", Content: line, Time: noon}
			if i == 1 {
				m.Role, m.Speaker = memory.RoleAssistant, ""
			}
			d.Messages = append(d.Messages, m)
		}
		tr := decide.Transcript{Dialogue: d, Speaker: "u", Location: time.UTC}
		v, err := r.Decide(t.Context(), tr)
		if err != nil {
			t.Fatal(err)
		}
		statements, err := r.Summarize(t.Context(), tr, v)
		if err != nil {
			t.Fatal(err)
		}
		last := ""
		for _, s := range statements {
			last = s.Quote
		}
		if !strings.Contains(last, lines[2]) {
			t.Errorf("%q is not remembered: %+v", lines[2], statements)
		}
	}
}
