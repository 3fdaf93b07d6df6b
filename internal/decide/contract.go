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
	// Notes takes what there is to say of the reading beside the statements: what had to be left out. It may be nil.
	Notes *Notes
}

// Notes are remarks for a consideration's reason. Each call has its own; the nil Notes forgets what it is told.
type Notes struct{ list []string }

// Add adds a remark.
func (n *Notes) Add(remark string) {
	if n != nil {
		n.list = append(n.list, remark)
	}
}

// All are the remarks, in order.
func (n *Notes) All() []string {
	if n == nil {
		return nil
	}
	return n.list
}

// Verdict is the answer to "is anything here worth remembering?".
type Verdict struct {
	Remember bool   `json:"remember"`
	Explicit bool   `json:"explicit,omitempty"` // the speaker asked for it to be remembered
	Reason   string `json:"reason"`             // in words, always set
	// Reading is what the decider found, for a summariser that is the same and would have to find it again. Optional.
	Reading any `json:"-"`
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

// Reconciler compares new statements with what is known already, and says of each what becomes of it.
type Reconciler interface {
	// Name is "rules", or the model as "provider/model".
	Name() string
	// Probes are searches, besides that for the statement's own words, for what the statement may bring up to date: "lives in
	// Beijing" shares no word with "moved to Shanghai".
	Probes(s memory.Statement) []Probe
	// Reconcile returns a resolution for each claim, in order. It is safe for concurrent use; errors are as for Decide.
	Reconcile(ctx context.Context, input ReconcileInput) ([]Resolution, error)
}

// Probe is a search by keywords.
type Probe struct {
	Query string
	Keep  func(m *memory.Memory) bool // which hits are near to the statement
}

// ReconcileInput is what one consideration wants to store.
type ReconcileInput struct {
	// Claims are in the order in which they were said. Later ones may have earlier ones for targets.
	Claims []Claim
}

// Claim is a statement with the candidates: existing memories that it may repeat or change.
type Claim struct {
	MemoryID  string // of the memory that it becomes when it is stored
	Statement memory.Statement
	Near      []Neighbor
}

// Neighbor is a memory that holds, of the same visibility as the statement.
type Neighbor struct {
	Memory memory.Memory
	// Cosine is the similarity of meaning. It is 0 when no model says so: vectors of hashed n-grams tell of spelling.
	Cosine float64
}

// Resolution says how a statement is stored.
type Resolution struct {
	Action Treatment `json:"action"`
	// Targets are ids of memories near the claim, or of earlier claims: none for TreatAdd, one for TreatSame and
	// TreatOutdated.
	Targets []string `json:"targets,omitempty"`
	Reason  string   `json:"reason,omitempty"` // in words, unless it is simply new
	// Text is what the statement says from then on, in place of its own text; only with TreatSupersede. "Strike milk off the
	// list" leaves a list without milk.
	Text string `json:"text,omitempty"`
}

// Treatment is what is done with a statement.
type Treatment string

// The treatments.
const (
	TreatAdd       Treatment = "add"       // it is new
	TreatSame      Treatment = "same"      // it says what the target says, which is reinforced
	TreatSupersede Treatment = "supersede" // it takes the place of the targets
	TreatOutdated  Treatment = "outdated"  // it is stored as history, because the target was said later
	TreatWithdraw  Treatment = "withdraw"  // it asks for the targets to be forgotten, which may be none
)
