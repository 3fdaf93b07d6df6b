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

// Finding is what can be wrong with a memory.
type Finding string

// The findings.
const (
	Duplicate     Finding = "duplicate"      // another of the same visibility says the same to the letter
	NearDuplicate Finding = "near_duplicate" // another of the same visibility says the same in nearly the same words
	Junk          Finding = "junk"           // likely not worth remembering
	Quarantined   Finding = "quarantined"
	Stale         Finding = "stale"
	Unsupported   Finding = "unsupported"    // it names no message or no words that it rests on
	WithoutVector Finding = "without_vector" // it has no vector of the model in use
)

// order is that of the examples.
var order = []Finding{Duplicate, NearDuplicate, Junk, Quarantined, Stale, Unsupported, WithoutVector}

// Account is the state of one user's memories, or of several users' together.
type Account struct {
	UserID    string // empty for several users
	Users     int64  // who have memories
	Statuses  map[memory.Status]int64
	Findings  map[Finding]int64 // of active memories, and how many are quarantined
	Doubtful  int64             // active memories that are duplicates, near duplicates or junk, each once
	Elsewhere int64             // active memories whose text is also known with another visibility, which is no defect
	Examples  []Example
	Cut       string // what was not looked into, in words

	cutUsers int
}

// Active is how many memories hold.
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

// add counts another account in.
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
	OtherID   string // of duplicates, the memory that says the same and could stay
	OtherText string
}

// Query says what to look at.
type Query struct {
	Namespace   string
	UserID      string // empty: everybody
	MaxUsers    int    // accounts of that many users are returned, the worst
	MaxExamples int    // of each finding, for each user
}

// Report is what an audit found.
type Report struct {
	Users []*Account // the worst first
	Total *Account
}

// Options describes an Auditor.
type Options struct {
	// Fingerprint is that of the model in use, "" until it is known.
	Fingerprint func() string
	// Retention is how well a memory is kept in mind, 0 to 1, as retention.Curve says.
	Retention func(m *memory.Memory, now time.Time) float64
}

// Auditor makes audits, one at a time.
type Auditor struct {
	store   vectorstore.Survey
	options Options
	turn    chan struct{}

	maxCompared, maxWork int
}

// New returns an Auditor.
func New(store vectorstore.Survey, options Options) *Auditor {
	return &Auditor{store: store, options: options, turn: make(chan struct{}, 1), maxCompared: maxCompared, maxWork: maxWork}
}

const (
	usersPage    = 500
	memoriesPage = 500 // read at once: a few milliseconds, so that no snapshot of the database is kept for long
)

// Run looks at everything that the query names. progress is called after every page; its error ends the audit. It waits
// while another audit runs.
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
		u := &userAudit{auditor: a, query: &q, account: newAccount(id), now: time.Now()}
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

// keep puts an account in its place among the worst.
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
