package rules

import (
	"testing"

	"github.com/memsidecar/memsidecar/internal/decide"
	"github.com/memsidecar/memsidecar/internal/memory"
)

func TestUrgent(t *testing.T) {
	r, err := New(DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		want bool
		said string
	}{
		{true, "Please remember that I take the early train."},
		{true, "Forget what I told you about my neighbour."},
		{true, "Don't save this."},
		{true, "请记住：我坐早班车。"},
		{true, "忘掉我刚才说的话。"},
		{false, "I take the early train."},
		{false, "I forgot my umbrella."},
		{false, "今天的火车很挤。"},
	} {
		d := memory.Dialogue{Messages: []memory.Message{{Role: memory.RoleUser, Speaker: "ann", Content: c.said}}}
		if got := r.Urgent(decide.Transcript{Dialogue: d, Speaker: "ann"}); got != c.want {
			t.Errorf("%q: %t", c.said, got)
		}
		if r.Urgent(decide.Transcript{Dialogue: d, Speaker: "ann", Earlier: 1}) || r.Urgent(decide.Transcript{Dialogue: d, Speaker: "ben"}) {
			t.Errorf("%q: heard in an earlier message or of another speaker", c.said)
		}
	}
}
