// Package budget counts the tokens that models use in a day (UTC), for each namespace and each user, and refuses calls that
// would exceed a limit.
//
// A call is admitted if the estimated tokens of its prompt fit into the budget. The tokens that it used are counted afterwards.
// So a budget can be exceeded by the answers of running calls and by the error of the estimates. A crash loses the counts of the
// last second. Store declares the storage; budgettest is its conformance suite.
package budget

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/memsidecar/memsidecar/internal/background"
	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/usage"
)

// Limits are the tokens that may be used in a day; 0 is no limit.
type Limits struct {
	Namespace int64 // by the namespace as a whole
	User      int64 // by each of its users
}

// Options describes a Meter.
type Options struct {
	// Limits is asked whenever it matters.
	Limits func(namespace string) Limits
	// Now is the clock; nil is the machine's.
	Now func() time.Time
	Log *slog.Logger
}

// maxCounts is how many counts are kept in memory before those not in use are read from the storage again.
const maxCounts = 100_000

// Meter counts.
type Meter struct {
	store   Store
	options Options
	writer  *background.BatchWriter[Entry]

	mu     sync.Mutex
	day    string                 // of counts and logged
	counts map[memory.User]*count // as far as they were asked for; a user without an id is a namespace
	logged map[string]bool        // what the log said today
}

// count is what was counted of a budget today.
type count struct {
	tokens   int64
	reserved int64 // by calls under way
}

// NewMeter returns a meter that works until Close.
func NewMeter(store Store, options Options) *Meter {
	if options.Now == nil {
		options.Now = time.Now
	}
	return &Meter{
		store: store, options: options, counts: map[memory.User]*count{}, logged: map[string]bool{},
		writer: background.NewBatchWriter(store.Add, background.BatchOptions{Name: "token counts", Every: time.Second, Max: 100_000, Log: options.Log}),
	}
}

// Close writes the pending counts.
func (m *Meter) Close() { m.writer.Close() }

// Reset drops the counts in memory. Call it when another database may have been opened.
func (m *Meter) Reset() {
	m.mu.Lock()
	defer m.mu.Unlock()
	clear(m.counts)
}

// allowance is a limit that a call is subject to.
type allowance struct {
	of    memory.BudgetOf
	user  memory.User // without an id: the namespace
	limit int64
}

// allowances are the limits that calls for the user are subject to, the namespace's first.
func (m *Meter) allowances(user memory.User) (list []allowance) {
	if user.Namespace == "" {
		return nil // work that concerns several
	}
	limits := m.options.Limits(user.Namespace)
	if limits.Namespace > 0 {
		list = append(list, allowance{memory.BudgetOfNamespace, memory.User{Namespace: user.Namespace}, limits.Namespace})
	}
	if limits.User > 0 && user.ID != "" {
		list = append(list, allowance{memory.BudgetOfUser, user, limits.User})
	}
	return list
}

// Reserve reserves the tokens that a call needs at least in the budgets of the context's user (usage.WithUser). If one of them
// has too few left, it returns a *memory.BudgetError. settle must be called once, with the tokens that the call used.
func (m *Meter) Reserve(ctx context.Context, tokens int64) (settle func(tokens int64), err error) {
	user := usage.User(ctx)
	allowances := m.allowances(user)
	for {
		now := m.options.Now()
		day := usage.Day(now)
		for _, a := range allowances {
			if err := m.load(ctx, day, a.user); err != nil {
				return nil, err
			}
		}
		reserved, complete, refusal := m.take(now, allowances, tokens)
		switch {
		case !complete:
			continue // the day is over, or it was dropped meanwhile
		case refusal != nil:
			return nil, refusal
		}
		return func(took int64) {
			m.mu.Lock()
			for _, c := range reserved {
				c.reserved -= tokens
			}
			m.mu.Unlock()
			m.Add(user, took)
		}, nil
	}
}

// load reads a count from the storage unless it is in memory.
func (m *Meter) load(ctx context.Context, day string, user memory.User) error {
	m.mu.Lock()
	m.begin(day)
	_, ok := m.counts[user]
	m.mu.Unlock()
	if ok {
		return nil
	}
	// What is added between the two and is not asked for (embeddings) is missing in memory until the next start: less than a
	// second of one day.
	m.writer.Flush(ctx)
	stored, err := m.store.Get(ctx, day, user)
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.day != day || m.counts[user] != nil {
		return nil
	}
	if len(m.counts) >= maxCounts {
		for other, c := range m.counts {
			if c.reserved == 0 {
				delete(m.counts, other)
			}
		}
	}
	m.counts[user] = &count{tokens: stored.Tokens}
	return nil
}

// begin forgets what was counted on another day. The meter must be locked.
func (m *Meter) begin(day string) {
	if m.day != day {
		m.day = day
		clear(m.counts)
		clear(m.logged)
	}
}

// take reserves the tokens in all budgets or, when one of them refuses, in none. It is not complete when a count is not in
// memory.
func (m *Meter) take(now time.Time, allowances []allowance, tokens int64) (reserved []*count, complete bool, refusal error) {
	day := usage.Day(now)
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, a := range allowances {
		c := m.counts[a.user]
		if m.day != day || c == nil {
			return nil, false, nil
		}
		reserved = append(reserved, c)
	}
	for i, a := range allowances {
		taken := reserved[i].tokens + reserved[i].reserved
		if taken+tokens <= a.limit {
			continue
		}
		until := usage.DayAfter(now)
		m.writer.Add(Entry{Day: day, User: a.user, Count: Count{Refused: 1}})
		if said := a.user.Namespace + " " + string(a.of); !m.logged[said] {
			m.logged[said] = true
			m.options.Log.Warn("a daily token budget is used up: rules do the work of models until it is renewed",
				"namespace", a.user.Namespace, "budget_of", a.of, "tokens", taken, "limit", a.limit, "until", until)
		}
		return nil, true, &memory.BudgetError{Of: a.of, Limit: a.limit, Used: taken, Needed: tokens, Until: until}
	}
	for _, c := range reserved {
		c.reserved += tokens
	}
	return reserved, true, nil
}

// Add counts the tokens used for a user, also beyond the limits. It never blocks on the storage.
func (m *Meter) Add(user memory.User, tokens int64) {
	if tokens <= 0 || user.Namespace == "" {
		return
	}
	day := usage.Day(m.options.Now())
	m.mu.Lock()
	defer m.mu.Unlock()
	m.begin(day)
	for i, of := range []memory.User{{Namespace: user.Namespace}, user} {
		if i > 0 && user.ID == "" {
			break
		}
		if c := m.counts[of]; c != nil {
			c.tokens += tokens
		}
		m.writer.Add(Entry{Day: day, User: of, Count: Count{Tokens: tokens}})
	}
}
