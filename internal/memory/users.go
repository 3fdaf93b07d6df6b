package memory

import "time"

// UserOrder is the order of a list of users.
type UserOrder int

// The orders.
const (
	UsersByID       UserOrder = iota // by id, byte by byte
	UsersByActivity                  // most recently active first
)

// UserQuery asks for a page of the users of a namespace.
type UserQuery struct {
	Namespace string
	Prefix    string // of the user's id; only with UsersByID
	Order     UserOrder
	After     string // UserPage.Next of the previous page, empty for the first
	Limit     int    // at least 1
}

// UserPage is a page of users. Next is empty on the last one.
type UserPage struct {
	Users []UserSummary
	Next  string
}

// UserSummary is how much is stored of a user.
type UserSummary struct {
	ID       string
	Memories int64 // in all states
	Sessions int64 // in which the user takes part
	Messages int64 // in sessions: the user's messages and the answers to them
	Pending  int64 // considerations that are pending or running
	// LastActive is when a message or a memory of the user was last stored, to within UserActivityStep. It is zero if none was.
	LastActive time.Time
}

// UserActivityStep is the precision of UserSummary.LastActive: it is updated at most once in this time.
const UserActivityStep = 10 * time.Minute
