package audit

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/vectorstore"
)

// userAudit is the audit of one user.
type userAudit struct {
	auditor *Auditor
	query   *Query
	account *Account
	now     time.Time

	compared    []*statement    // statements to compare, newest first
	uncompared  int             // active memories beyond maxCompared
	vectorBytes int             // of the statements to compare
	shown       map[Finding]int // examples
}

// maxCompared limits the active memories of a user to compare; the newest are chosen. Each takes a few kilobytes.
const maxCompared = 10_000

// run reads the memories page by page, then compares them.
func (u *userAudit) run(ctx context.Context, user memory.User, progress func(memories int) error) error {
	u.shown = map[Finding]int{}
	fingerprint := u.auditor.options.Fingerprint()
	for after, more := "", true; more; more = after != "" {
		items, next, err := u.auditor.store.Survey(ctx, user, fingerprint, after, memoriesPage)
		if err != nil {
			return err
		}
		for i := range items {
			u.look(&items[i], fingerprint != "")
		}
		if err := progress(len(items)); err != nil {
			return err
		}
		if len(items) > 0 {
			u.account.Users = 1
		}
		after = next
	}
	if err := u.compare(ctx); err != nil {
		return err
	}
	slices.SortStableFunc(u.account.Examples, func(a, b Example) int {
		return cmp.Compare(slices.Index(order, a.Finding), slices.Index(order, b.Finding))
	})
	return nil
}

// look counts a memory and checks it on its own.
func (u *userAudit) look(item *vectorstore.SurveyItem, vectors bool) {
	m := &item.Memory
	status := m.StatusAt(u.now)
	u.account.Statuses[status]++
	if status == memory.StatusQuarantined {
		u.found(Quarantined, m.ID, m.Text, m.Quarantine, nil)
	}
	if status != memory.StatusActive {
		return
	}
	junk := junkReason(m)
	if junk != "" {
		u.found(Junk, m.ID, m.Text, junk, nil)
		u.account.Doubtful++
	}
	if u.auditor.options.Retention(m, u.now) < staleBelow {
		u.found(Stale, m.ID, m.Text, staleReason(m), nil)
	}
	if reason := unsupported(&m.Provenance); reason != "" {
		u.found(Unsupported, m.ID, m.Text, reason, nil)
	}
	if vectors && item.Vector == nil {
		u.found(WithoutVector, m.ID, m.Text, "it is found by keywords only", nil)
	}
	if len(u.compared) == u.auditor.maxCompared {
		u.uncompared++
		return
	}
	u.compared = append(u.compared, u.statement(item, junk != ""))
}

// unsupported returns what is missing of a memory's source. Memories that the bot stored itself need no source.
func unsupported(p *memory.Provenance) string {
	if p.Source == memory.SourceAPI {
		return ""
	}
	var lacks []string
	if len(p.MessageIDs) == 0 {
		lacks = append(lacks, "no message")
	}
	if p.Quote == "" {
		lacks = append(lacks, "no words")
	}
	if lacks == nil {
		return ""
	}
	return fmt.Sprintf("%s of the user's that it rests on", strings.Join(lacks, " and "))
}

// found counts a finding and keeps it as an example.
func (u *userAudit) found(f Finding, id, text, reason string, other *statement) {
	u.account.Findings[f]++
	if u.shown[f] >= u.query.MaxExamples {
		return
	}
	u.shown[f]++
	e := Example{Finding: f, MemoryID: id, Text: beginning(text), Reason: beginning(reason)}
	if other != nil {
		e.OtherID, e.OtherText = other.id, beginning(other.text)
	}
	u.account.Examples = append(u.account.Examples, e)
}

// maxExampleRunes limits the text of an example.
const maxExampleRunes = 200

func beginning(text string) string {
	if runes := []rune(text); len(runes) > maxExampleRunes {
		return string(runes[:maxExampleRunes-1]) + "…"
	}
	return text
}
