package decide_test

import (
	"context"
	"testing"

	"github.com/memsidecar/memsidecar/internal/decide"
	"github.com/memsidecar/memsidecar/internal/memory"
)

// stepper is rules and a reconciler that want to be inside of a step, and only one.
type stepper struct {
	decide.Rules
	decide.Reconciler
	t     *testing.T
	depth int
	done  []string
}

func (s *stepper) step(context.Context) (end func()) {
	s.depth++
	return func() { s.depth-- }
}

func (s *stepper) work(what string) {
	if s.depth != 1 {
		s.t.Errorf("%s: %d steps under way, want 1", what, s.depth)
	}
	s.done = append(s.done, what)
}

func (s *stepper) Name() string { return "rules" }

func (s *stepper) Decide(context.Context, decide.Transcript) (decide.Verdict, error) {
	s.work("decide")
	return decide.Verdict{Remember: true}, nil
}

func (s *stepper) Summarize(context.Context, decide.Transcript, decide.Verdict) ([]memory.Statement, error) {
	s.work("summarise")
	return []memory.Statement{{Text: "x"}}, nil
}

func (s *stepper) Reconcile(context.Context, decide.ReconcileInput) ([]decide.Resolution, error) {
	s.work("reconcile")
	return []decide.Resolution{{}}, nil
}

// TestInSteps: what computes does so in a step of its own each time, which is over afterwards, and answers as it did.
func TestInSteps(t *testing.T) {
	s := &stepper{t: t}
	rules, reconciler := decide.RulesInSteps(s, s.step), decide.ReconcilerInSteps(s, s.step)
	if v, err := rules.Decide(t.Context(), decide.Transcript{}); err != nil || !v.Remember {
		t.Errorf("decided %+v, %v", v, err)
	}
	if list, err := rules.Summarize(t.Context(), decide.Transcript{}, decide.Verdict{}); err != nil || len(list) != 1 {
		t.Errorf("summarised %+v, %v", list, err)
	}
	if list, err := reconciler.Reconcile(t.Context(), decide.ReconcileInput{}); err != nil || len(list) != 1 {
		t.Errorf("reconciled %+v, %v", list, err)
	}
	if rules.Name() != "rules" || len(s.done) != 3 || s.depth != 0 {
		t.Errorf("%s did %q, and %d steps are left", rules.Name(), s.done, s.depth)
	}
}
