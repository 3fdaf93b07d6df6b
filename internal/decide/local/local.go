// Package local extracts without a model: it decides and summarises, and compares the statements with existing memories.
package local

import (
	"context"
	"fmt"
	"slices"

	"github.com/memsidecar/memsidecar/internal/decide"
	"github.com/memsidecar/memsidecar/internal/lang/redact"
	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/vectorstore"
)

// lastMessages is how many of the last turns' messages are read: the question that an answer belongs to, what is corrected, and what is
// taken back.
const lastMessages = 4

// Deps is what an Extractor works with.
type Deps struct {
	Decider    decide.Decider
	Summarizer decide.Summarizer
	Reconciler decide.Reconciler // optional: without it all statements count as new
	Memories   decide.Memories
	Vectors    decide.Vectors
	Echoes     *decide.Echoes // optional
	// Standing returns the class of a statement, which may be the one that it has. Optional.
	Standing func(s memory.Statement) memory.StandingClass
}

// Extractor implements decide.Extractor.
type Extractor struct{ Deps }

var _ decide.Extractor = (*Extractor)(nil)

// New returns an Extractor.
func New(d Deps) *Extractor { return &Extractor{d} }

// Name implements decide.Extractor.
func (e *Extractor) Name() string { return e.Decider.Name() }

// Extract implements decide.Extractor.
func (e *Extractor) Extract(ctx context.Context, in decide.Input) (decide.Extraction, error) {
	t := in.LastTurns(lastMessages)
	v, err := e.Decider.Decide(ctx, t)
	if err != nil || !v.Remember {
		return decide.Extraction{Reason: v.Reason, Private: v.Private, Checked: true}, err
	}
	found := decide.Extraction{Reason: v.Reason, Private: v.Private, Checked: true}
	statements, err := e.Summarizer.Summarize(ctx, t, v)
	if err != nil {
		return found, fmt.Errorf("summarising: %w", err)
	}
	statements = slices.DeleteFunc(statements, func(s memory.Statement) bool { return !t.CitesNew(s) }) // considered before
	statements, note, err := e.Echoes.Examine(ctx, t, statements)
	if err != nil {
		return found, fmt.Errorf("comparing with existing memories: %w", err)
	}
	if found.Reason += note; len(statements) == 0 {
		found.Reason += "; but no statement could be made of it"
	}
	if found.Ops, err = e.ops(ctx, t, statements); err != nil {
		return found, fmt.Errorf("comparing with existing memories: %w", err)
	}
	for i := range found.Ops {
		op := &found.Ops[i]
		if e.Standing != nil && !op.Statement.Forget {
			op.Statement.Standing = e.Standing(op.Statement)
		}
		if op.Statement.Everything {
			op.IDs, op.Reason = []string{decide.Everything}, "the user asked to forget everything"
		}
	}
	return found, e.justSaid(t, in, found.Ops)
}

// Private returns the messages that the speaker asked not to keep.
func (e *Extractor) Private(ctx context.Context, in decide.Input) ([]string, error) {
	v, err := e.Decider.Decide(ctx, in.LastTurns(lastMessages))
	return v.Private, err
}

// ops says how each statement is stored.
func (e *Extractor) ops(ctx context.Context, t decide.Transcript, statements []memory.Statement) ([]decide.Op, error) {
	ops := make([]decide.Op, len(statements))
	for i, s := range statements {
		ops[i] = decide.Op{Action: decide.OpAdd, Statement: s}
		if s.Forget {
			ops[i].Action = decide.OpForget
		}
	}
	if e.Reconciler == nil || len(ops) == 0 {
		return ops, nil
	}
	if err := e.embed(ctx, ops); err != nil {
		return nil, err
	}
	input := decide.ReconcileInput{Claims: make([]decide.Claim, len(ops))}
	for i := range ops {
		claim := decide.Claim{MemoryID: decide.OpID(i), Statement: ops[i].Statement}
		if redact.Bare(claim.Statement.Text) {
			claim.Statement.Quarantine = "it holds only a secret" // it must not change any memory
		}
		var err error
		if claim.Near, err = e.near(ctx, t, claim.Statement, ops[i].Embedding); err != nil {
			return nil, err
		}
		input.Claims[i] = claim
	}
	resolutions, err := e.Reconciler.Reconcile(ctx, input)
	if err != nil {
		return nil, err
	}
	for i, r := range consistent(input.Claims, resolutions) {
		op := &ops[i]
		op.IDs, op.Reason = r.Targets, r.Reason
		switch r.Action {
		case decide.TreatAdd:
		case decide.TreatSame:
			op.Action = decide.OpSame
		case decide.TreatSupersede:
			op.Action = decide.OpUpdate
			if r.Text != "" {
				op.Statement.Text, op.Embedding = r.Text, vectorstore.Embedding{}
			}
		case decide.TreatOutdated:
			op.Action, op.History = decide.OpUpdate, true
		case decide.TreatWithdraw:
			op.Action = decide.OpForget
		}
	}
	return ops, nil
}

// justSaid adds to requests to forget the memories that were made of the messages they concern, when these are messages of the last
// turns. The words of such a memory need not be those of the message.
func (e *Extractor) justSaid(t decide.Transcript, in decide.Input, ops []decide.Op) error {
	for i := range ops {
		op := &ops[i]
		if op.Action != decide.OpForget || !t.CitesEarlier(op.Statement) {
			continue
		}
		known, err := in.Known()
		if err != nil {
			return err
		}
		for _, k := range known {
			if k.JustNow && decide.RestsOn(&k.Memory, op.Statement.MessageIDs) && !slices.Contains(op.IDs, k.Memory.ID) {
				op.IDs = append(op.IDs, k.Memory.ID)
			}
		}
		if len(op.IDs) > 0 && op.Reason == "" {
			op.Reason = fmt.Sprintf("the user asked for it to be forgotten: %q", op.Statement.Text)
		}
	}
	return nil
}

// embed adds the vectors of the statements.
func (e *Extractor) embed(ctx context.Context, ops []decide.Op) error {
	var texts []string
	for i := range ops {
		if ops[i].Action != decide.OpForget {
			texts = append(texts, ops[i].Statement.Text)
		}
	}
	if len(texts) == 0 {
		return nil
	}
	made, err := e.Vectors.Embeddings(ctx, texts)
	if err != nil {
		return err
	}
	for i := range ops {
		if ops[i].Action != decide.OpForget {
			ops[i].Embedding, made = made[0], made[1:]
		}
	}
	return nil
}
