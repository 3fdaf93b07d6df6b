package decide

import (
	"context"
	"fmt"
	"slices"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/queue"
)

// Exclusions keeps messages out of what is derived from messages: search, topics, summaries and digests. Its method is that of
// sqlstore.Sessions.
type Exclusions interface {
	// Exclude excludes messages that a consideration's speaker asked not to keep, see Transcript.Ref. Repeating it changes nothing.
	Exclude(ctx context.Context, user memory.User, considerationID string, refs []string) error
}

// RestsOn reports whether a memory rests on one of the messages, which Transcript.Ref names.
func RestsOn(m *memory.Memory, refs []string) bool {
	return slices.ContainsFunc(m.Provenance.MessageIDs, func(id string) bool {
		return slices.Contains(refs, id) || slices.Contains(refs, m.Provenance.ConsiderationID+id)
	})
}

// withdrawPrivate adds the withdrawal of memories that were made of earlier messages which are not to be kept.
func withdrawPrivate(in Input, found *Extraction) error {
	said := memory.Statement{MessageIDs: found.Private}
	if !in.CitesEarlier(said) {
		return nil
	}
	known, err := in.Known()
	if err != nil {
		return err
	}
	for _, k := range known {
		named := slices.ContainsFunc(found.Ops, func(op Op) bool { return op.Action == OpForget && slices.Contains(op.IDs, k.Memory.ID) })
		if !k.JustNow || named || !RestsOn(&k.Memory, found.Private) {
			continue
		}
		found.Ops = append(found.Ops, Op{
			Action: OpForget, IDs: []string{k.Memory.ID}, Reason: fmt.Sprintf("the user asked not to keep it: %q", k.Memory.Text),
			Statement: memory.Statement{
				Text: k.Memory.Text, Language: k.Memory.Language, Kind: k.Memory.Kind, Forget: true, Explicit: true, MessageIDs: found.Private,
				ObservedAt: in.Dialogue.Messages[len(in.Dialogue.Messages)-1].Time,
			},
		})
	}
	return nil
}

// exclude excludes the messages that are not to be kept, and those of requests to forget that match no memory. Messages of other requests
// are excluded with the memories that these withdraw, and are restored with them.
func (c *Considerer) exclude(ctx context.Context, job queue.Job, p plan) error {
	if c.Excluded == nil {
		return nil
	}
	refs := slices.Clone(p.Private)
	for i, s := range p.Statements {
		if s.Forget && len(p.Resolutions[i].Targets) == 0 {
			refs = append(refs, s.MessageIDs...)
		}
	}
	refs = slices.DeleteFunc(refs, func(ref string) bool {
		for i, s := range p.Statements {
			if s.Forget && len(p.Resolutions[i].Targets) > 0 && slices.Contains(s.MessageIDs, ref) {
				return true
			}
		}
		return false
	})
	if len(refs) == 0 {
		return nil
	}
	return c.Excluded.Exclude(ctx, job.User(), job.Consideration.ID, refs)
}
