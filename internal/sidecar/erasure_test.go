package sidecar

import "testing"

// TestForgetOrder: what writes data of a user is deleted before what it writes.
func TestForgetOrder(t *testing.T) {
	p := &components{days: &digests{}}
	first, last := map[string]int{}, map[string]int{} // stages by name
	for i, stage := range p.forgetters() {
		for _, f := range stage {
			if _, ok := first[f.Name()]; !ok {
				first[f.Name()] = i
			}
			last[f.Name()] = i
		}
	}
	for _, pair := range []struct{ before, after, reason string }{
		{"traces", "sessions", "pending traces quote messages of sessions"},
		{"traces", "considerations", "pending traces quote considerations"},
		{"digests", "sessions", "pending digests are made of messages of sessions"},
		{"sessions", "considerations", "a job may be made of the messages of a session until they are gone"},
		{"considerations", "memories", "jobs make memories"},
		{"considerations", "settings", "without settings a job would not know that remembering is paused"},
		{"considerations", "token counts", "jobs call models"},
		{"considerations", "files of digests", "jobs add findings, which are written to files"},
		{"sessions", "numbered lists", "lists are shown in sessions"},
	} {
		before, ok := first[pair.before]
		after, found := first[pair.after]
		if !ok || !found || before >= after {
			t.Errorf("%s must be forgotten in a stage before %s: %s", pair.before, pair.after, pair.reason)
		}
	}
	if last["digests"] <= last["considerations"] {
		t.Error("digests must be forgotten again after considerations: another user's job may have added findings about this user")
	}
}
