package audit

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/vectorstore"
)

// Finding is a possible problem of a memory.
type Finding string

// The findings.
const (
	Duplicate     Finding = "duplicate"      // another of the same visibility has the same text
	NearDuplicate Finding = "near_duplicate" // another of the same visibility has nearly the same text
	Junk          Finding = "junk"           // likely not worth remembering
	Quarantined   Finding = "quarantined"
	Stale         Finding = "stale"
	Unsupported   Finding = "unsupported"    // it cites no message or no words as its source
	WithoutVector Finding = "without_vector" // it has no vector of the current model
)

// order is the order of the examples.
var order = []Finding{Duplicate, NearDuplicate, Junk, Quarantined, Stale, Unsupported, WithoutVector}

// Account is the state of one user's memories, or the sum of several users'.
type Account struct {
	UserID    string // empty for several users
	Users     int64  // who have memories
	Statuses  map[memory.Status]int64
	Findings  map[Finding]int64 // of active memories, and how many are quarantined
	Doubtful  int64             // active memories that are duplicates, near duplicates or junk, each once
	Elsewhere int64             // active memories with a copy of another visibility, which is not a defect
	Examples  []Example
	Cut       string // what was not checked, in words

	cutUsers int
}

// Active returns the number of active memories.
func (a *Account) Active() int64 { return a.Statuses[memory.StatusActive] }

// DoubtfulShare is the share of the active memories that are doubtful, 0 to 1.
func (a *Account) DoubtfulShare() float64 {
	if a.Active() == 0 {
		return 0
	}
	return float64(a.Doubtful) / float64(a.Active())
}

func newAccount(userID string) *Account {
	return &Account{UserID: userID, Statuses: map[memory.Status]int64{}, Findings: map[Finding]int64{}}
}

// add adds another account.
func (a *Account) add(other *Account) {
	a.Users += other.Users
	a.Doubtful += other.Doubtful
	a.Elsewhere += other.Elsewhere
	if other.Cut != "" {
		a.cutUsers++
		a.Cut = fmt.Sprintf("not all memories were compared with each other, because there are too many (users concerned: %d)", a.cutUsers)
	}
	for status, n := range other.Statuses {
		a.Statuses[status] += n
	}
	for finding, n := range other.Findings {
		a.Findings[finding] += n
	}
}

// Example is a memory with a finding.
type Example struct {
	Finding   Finding
	MemoryID  string
	Text      string // or its beginning
	Reason    string // in words
	OtherID   string // for a duplicate: the memory that could stay
	OtherText string
}

// Query selects what to audit.
type Query struct {
	Namespace   string
	UserID      string // empty: all users
	MaxUsers    int    // number of user accounts to return, worst first
	MaxExamples int    // per finding and user
}

// Report is the result of an audit.
type Report struct {
	Users []*Account // worst first
	Total *Account
}

// Options describes an Auditor.
type Options struct {
	// Fingerprint returns that of the current model, or "" until it is known.
	Fingerprint func() string
	// Retention returns the retention of a memory, 0 to 1, see retention.Curve.
	Retention func(m *memory.Memory, now time.Time) float64
	// Now is the clock; by default time.Now.
	Now func() time.Time
}

// Auditor runs audits, one at a time.
type Auditor struct {
	store   vectorstore.Survey
	options Options
	turn    chan struct{}

	maxCompared, maxWork int
}

// New returns an Auditor.
func New(store vectorstore.Survey, options Options) *Auditor {
	if options.Now == nil {
		options.Now = time.Now
	}
	return &Auditor{store: store, options: options, turn: make(chan struct{}, 1), maxCompared: maxCompared, maxWork: maxWork}
}

const (
	usersPage    = 500
	memoriesPage = 500 // per read: a few milliseconds, so that no database snapshot is held for long
)

// Run audits the memories that the query selects. progress is called after every page; its error ends the audit. Run waits while
// another audit runs.
func (a *Auditor) Run(ctx context.Context, q Query, progress func(users, memories int64) error) (*Report, error) {
	select {
	case a.turn <- struct{}{}:
		defer func() { <-a.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	r := &Report{Total: newAccount("")}
	looked := int64(0)
	look := func(id string) error {
		u := &userAudit{auditor: a, query: &q, account: newAccount(id), now: a.options.Now()}
		err := u.run(ctx, memory.User{Namespace: q.Namespace, ID: id}, func(n int) error {
			looked += int64(n)
			return progress(r.Total.Users, looked)
		})
		if err != nil {
			return err
		}
		r.Total.add(u.account)
		if u.account.Users > 0 {
			r.keep(u.account, q.MaxUsers)
		}
		return nil
	}
	if q.UserID != "" {
		return r, look(q.UserID)
	}
	for after := ""; ; {
		ids, err := a.store.Users(ctx, q.Namespace, after, usersPage)
		if err != nil {
			return nil, err
		}
		for _, id := range ids {
			if err := look(id); err != nil {
				return nil, err
			}
			after = id
		}
		if len(ids) < usersPage {
			return r, nil
		}
	}
}

// keep inserts an account into the list of the worst.
func (r *Report) keep(account *Account, limit int) {
	at, _ := slices.BinarySearchFunc(r.Users, account, worse)
	if at >= limit {
		return
	}
	r.Users = slices.Insert(r.Users, at, account)
	if len(r.Users) > limit {
		r.Users = r.Users[:limit]
	}
}

// worse orders the worst account first.
func worse(a, b *Account) int {
	return cmp.Or(
		cmp.Compare(b.Doubtful, a.Doubtful),
		cmp.Compare(b.Findings[Quarantined], a.Findings[Quarantined]),
		cmp.Compare(b.Active(), a.Active()),
		cmp.Compare(a.UserID, b.UserID),
	)
}
