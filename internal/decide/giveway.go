package decide

import (
	"context"

	"github.com/memsidecar/memsidecar/internal/memory"
)

// Step waits until a step that only computes may begin; end says that it is over.
type Step func(ctx context.Context) (end func())

// RulesInSteps are rules whose work is a step each time.
func RulesInSteps(r Rules, step Step) Rules { return steppingRules{r, step} }

type steppingRules struct {
	Rules
	step Step
}

func (r steppingRules) Decide(ctx context.Context, t Transcript) (Verdict, error) {
	defer r.step(ctx)()
	return r.Rules.Decide(ctx, t)
}

func (r steppingRules) Summarize(ctx context.Context, t Transcript, v Verdict) ([]memory.Statement, error) {
	defer r.step(ctx)()
	return r.Rules.Summarize(ctx, t, v)
}

// ReconcilerInSteps is a reconciler that asks no model and whose comparing is a step each time.
func ReconcilerInSteps(r Reconciler, step Step) Reconciler { return steppingReconciler{r, step} }

type steppingReconciler struct {
	Reconciler
	step Step
}

func (r steppingReconciler) Reconcile(ctx context.Context, input ReconcileInput) ([]Resolution, error) {
	defer r.step(ctx)()
	return r.Reconciler.Reconcile(ctx, input)
}
