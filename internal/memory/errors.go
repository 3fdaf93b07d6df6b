package memory

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// The errors that adapters turn their own into. Wrap them; compare with errors.Is.
var (
	// ErrNotFound: there is no such thing, or the request may not see it.
	ErrNotFound = errors.New("not found")
	// ErrUnavailable: storage is down and is being retried.
	ErrUnavailable = errors.New("storage is unavailable")
	// ErrPrecondition: the thing is not in the state the call needs.
	ErrPrecondition = errors.New("failed precondition")
	// ErrDamaged: what is stored cannot be read any more.
	ErrDamaged = errors.New("stored data is damaged")
)

// Storage reports whether the database is available.
type Storage interface {
	// Problem returns why storage cannot be read, or "".
	Problem() string
	// WriteProblem returns why storage that can be read cannot be written, or "".
	WriteProblem() string
}

// DamagedError is one stored row that cannot be read. It is ErrDamaged.
type DamagedError struct {
	Table   string // of the database
	ID      string // what the row is known by in it
	Problem string // holds nothing of what the row says
}

// Error says what to do.
func (e *DamagedError) Error() string {
	return fmt.Sprintf("%s: row %s of %s cannot be read: %s; delete it, or restore a backup (memsidecar check names all such rows)",
		ErrDamaged, e.ID, e.Table, e.Problem)
}

// Is reports that it is ErrDamaged.
func (e *DamagedError) Is(target error) bool { return target == ErrDamaged }

// Violation is one wrong field of a request.
type Violation struct {
	Field   string // path in the request, for example "messages[2].role"
	Problem string // completes a sentence that begins with the field
}

// Violations collects everything that is wrong with a request.
type Violations []Violation

// Add notes a problem.
func (v *Violations) Add(field, format string, args ...any) {
	*v = append(*v, Violation{Field: field, Problem: fmt.Sprintf(format, args...)})
}

// Check notes a problem unless it is empty.
func (v *Violations) Check(field, problem string) {
	if problem != "" {
		v.Add(field, "%s", problem)
	}
}

// Err is nil when nothing is wrong, and an *InvalidError otherwise.
func (v Violations) Err() error {
	if len(v) == 0 {
		return nil
	}
	return &InvalidError{Violations: v}
}

// InvalidError is a request with wrong fields, all of them named.
type InvalidError struct{ Violations Violations }

// Invalid is an InvalidError about one field.
func Invalid(field, format string, args ...any) error {
	var v Violations
	v.Add(field, format, args...)
	return v.Err()
}

// Error names every wrong field.
func (e *InvalidError) Error() string {
	parts := make([]string, len(e.Violations))
	for i, v := range e.Violations {
		parts[i] = v.Field + " " + v.Problem
	}
	return "invalid request: " + strings.Join(parts, "; ")
}

// RangeError is a number that names nothing in a list.
type RangeError struct {
	What  string // what the list has, for example "the list being shown"
	Got   int
	First int
	Last  int
}

// Error says which numbers there are.
func (e *RangeError) Error() string {
	return fmt.Sprintf("%s has no number %d: it has %d to %d", e.What, e.Got, e.First, e.Last)
}

// OverloadError says that a limit is reached and trying later helps.
type OverloadError struct {
	Limit      string // what is full, in words
	RetryAfter time.Duration
}

// Error says what is full and when to try again.
func (e *OverloadError) Error() string {
	return fmt.Sprintf("%s; try again in %s", e.Limit, e.RetryAfter)
}

// TransientError is a failure that trying again may cure: a network error, a rate limit, a provider that is down.
type TransientError struct {
	Err error
	// RetryAfter is how long the provider asked to wait; 0 if it did not say. In an error from a circuit breaker it is the time until the
	// breaker allows the next call.
	RetryAfter time.Duration
	// Unavailable is set if the provider's circuit breaker is not closed. The work did not fail; it waits for the breaker.
	Unavailable bool
}

// Error is the cause's text.
func (e *TransientError) Error() string { return e.Err.Error() }

// Unwrap is the cause.
func (e *TransientError) Unwrap() error { return e.Err }

// Unavailable reports whether an error says that a provider is unavailable for all, and how long its breaker lets no call through.
func Unavailable(err error) (wait time.Duration, unavailable bool) {
	var transient *TransientError
	if errors.As(err, &transient) && transient.Unavailable {
		return transient.RetryAfter, true
	}
	return 0, false
}

// RefusedError is a failure of a model's provider that does not pass by waiting, in words that are fit to be shown.
type RefusedError struct{ Err error }

// Error is the cause's text.
func (e *RefusedError) Error() string { return e.Err.Error() }

// Unwrap is the cause.
func (e *RefusedError) Unwrap() error { return e.Err }

// BudgetOf is whose a token budget is.
type BudgetOf string

// Whose budgets there are.
const (
	BudgetOfNamespace BudgetOf = "namespace"
	BudgetOfUser      BudgetOf = "user"
)

// BudgetError means that a model is not called because the call would exceed the tokens allowed for the day. Callers continue without a
// model; waiting does not help before the day ends.
type BudgetError struct {
	Of     BudgetOf
	Limit  int64     // tokens a day
	Used   int64     // taken, or about to be by calls under way
	Needed int64     // by this call at least, estimated
	Until  time.Time // when the day is over
}

// Error says which budget is used up, how far, and until when.
func (e *BudgetError) Error() string {
	return fmt.Sprintf("the daily token budget of the %s is used up until %s (%d of %d tokens are taken, and about %d more are needed)",
		e.Of, e.Until.UTC().Format(time.RFC3339), e.Used, e.Limit, e.Needed)
}
