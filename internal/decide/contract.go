package decide

import (
	"context"
	"time"

	"github.com/memsidecar/memsidecar/internal/memory"
)

// Transcript is a dialogue as the words of one of its speakers are considered.
type Transcript struct {
	Dialogue memory.Dialogue
	Speaker  string         // the user whose words are considered; the others' are context
	Location *time.Location // the speaker's time zone, for "tomorrow" and the like
}

// Verdict is the answer to "is anything here worth remembering?".
type Verdict struct {
	Remember bool   `json:"remember"`
	Explicit bool   `json:"explicit,omitempty"` // the speaker asked for it to be remembered
	Reason   string `json:"reason"`             // in words, always set
}

// Decider decides whether a dialogue holds anything worth remembering about its speaker.
type Decider interface {
	// Name is "rules", or the model as "provider/model". It is kept as provenance.
	Name() string
	// Decide is safe for concurrent use. An error means that it could not decide, never that there is nothing: a
	// *memory.TransientError is tried again, any other fails the consideration.
	Decide(ctx context.Context, t Transcript) (Verdict, error)
}

// Summarizer turns what is worth remembering into statements.
type Summarizer interface {
	// Name is "rules", or the model as "provider/model".
	Name() string
	// Summarize returns the statements, in the order in which they were said, each in the third person and in the
	// language of the dialogue, resting only on the speaker's own words or on what the speaker confirmed. None is a
	// valid answer. It is safe for concurrent use; errors are as for Decide.
	Summarize(ctx context.Context, t Transcript, v Verdict) ([]memory.Statement, error)
}
