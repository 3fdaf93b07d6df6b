package memory

import "time"

// State is where a consideration stands.
type State string

// The states. "Nothing worth remembering" is StateSkipped; "could not decide" is StatePending or StateFailed.
const (
	StatePending    State = "pending"
	StateRunning    State = "running"
	StateRemembered State = "remembered"
	StateSkipped    State = "skipped"
	StateFailed     State = "failed"
)

// Final reports whether the state never changes again without a call.
func (s State) Final() bool { return s == StateRemembered || s == StateSkipped || s == StateFailed }

// Consideration is the durable job that ConsiderMemorizing creates, as one speaker sees it.
type Consideration struct {
	ID            string // of the dialogue: the same for every speaker
	Scope         Scope  // Scope.UserID is the speaker whose words are considered
	State         State
	Outcome       Outcome
	Attempts      int
	NextAttemptAt time.Time // zero unless pending and due at a known time
	MessageCount  int
	CreatedAt     time.Time
	UpdatedAt     time.Time
}

// Outcome is how a consideration ended, or how its last attempt did.
type Outcome struct {
	Reason    string         `json:"reason,omitempty"`     // why skipped, or why remembered
	Error     string         `json:"error,omitempty"`      // of the last failed attempt
	Changes   []MemoryChange `json:"changes,omitempty"`    // when remembered
	DecidedBy string         `json:"decided_by,omitempty"` // "rules" or "provider/model"
	// Fallback is why rules decided instead of the configured model; empty: they did not.
	Fallback string `json:"fallback,omitempty"`
	// Dropped are changes that the model proposed and that could not be made, with the reasons.
	Dropped []string `json:"dropped,omitempty"`
	// ForgetEverything is set when the user asked to forget everything about them.
	ForgetEverything bool `json:"forget_everything,omitempty"`
}

// MemoryChange is what a consideration did to one memory.
type MemoryChange struct {
	MemoryID string `json:"memory"`
	Action   Action `json:"action"`
	Text     string `json:"text"`
	// Related are the memories whose place it took, or the one that holds in its place.
	Related []string `json:"related,omitempty"`
	Reason  string   `json:"reason,omitempty"` // in words, when there is something to say
}

// Action is what was done to a memory.
type Action string

// The actions.
const (
	ActionAdded       Action = "added"
	ActionReinforced  Action = "reinforced"
	ActionLeftDeleted Action = "left_deleted" // deleted since; not brought back
	ActionUnchanged   Action = "unchanged"    // already known; left as it is
	ActionUpdated     Action = "updated"      // new, and it took the place of older ones
	ActionOutdated    Action = "outdated"     // stored as history, because something said later is known
	ActionWithdrawn   Action = "withdrawn"    // the user asked for it to be forgotten
	ActionNotFound    Action = "not_found"    // the user asked to forget something, and no memory says it
	ActionQuarantined Action = "quarantined"  // stored, not retrieved
)
