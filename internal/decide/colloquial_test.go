package decide_test

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/memsidecar/memsidecar/internal/decide/model"
	"github.com/memsidecar/memsidecar/internal/llm"
	"github.com/memsidecar/memsidecar/internal/memory"
)

//go:embed testdata/colloquial.jsonl
var colloquial []byte

// oneAnswer is a model that gives one answer.
type oneAnswer string

func (oneAnswer) Name() string { return "test/scripted" }

func (s oneAnswer) Generate(context.Context, llm.Request) (llm.Response, error) {
	return llm.Response{Text: string(s)}, nil
}

// TestQuarantineOfColloquialStatements: Of 50 right statements about colloquial messages at most 3 are quarantined, and of 18 wrong ones
// (another person's, past, wished, denied, an invented number) at most 4 are not. The answers are scripted: they say of themselves what
// a capable model says.
func TestQuarantineOfColloquialStatements(t *testing.T) {
	s := newSystem(t, &judge{})
	quarantined, passed := 0, 0
	for i, line := range bytes.Split(bytes.TrimSpace(colloquial), []byte("\n")) {
		var c struct {
			Said  string
			Op    json.RawMessage
			Right bool
		}
		if err := json.Unmarshal(line, &c); err != nil {
			t.Fatal(err)
		}
		extractor, err := model.NewExtractor(oneAnswer(fmt.Sprintf(`{"ops":[%s]}`, c.Op)), model.Options{})
		if err != nil {
			t.Fatal(err)
		}
		s.Extractor = extractor
		r := dialogue(c.Said)
		r.Dialogue.Scope.UserID, r.Dialogue.Messages[0].Speaker = fmt.Sprint("u", i), fmt.Sprint("u", i)
		got := s.consider(t, r)
		if got.State != memory.StateRemembered || len(got.Outcome.Changes) != 1 {
			t.Errorf("%q is %+v", c.Said, got)
			continue
		}
		doubted := got.Outcome.Changes[0].Action == memory.ActionQuarantined
		switch {
		case c.Right && doubted:
			quarantined++
			t.Logf("right and quarantined: %q, because %s", c.Said, got.Outcome.Changes[0].Reason)
		case !c.Right && !doubted:
			passed++
			t.Logf("wrong and stored: %q: %s", c.Said, got.Outcome.Changes[0].Text)
		}
	}
	t.Logf("%d of 50 right statements are quarantined, %d of 18 wrong ones are not (%s)", quarantined, passed, time.Now().Format(time.DateOnly))
	if quarantined > 3 || passed > 4 {
		t.Errorf("%d of 50 right statements are quarantined, %d of 18 wrong ones are not", quarantined, passed)
	}
}
