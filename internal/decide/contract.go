package decide

import (
	"context"
	"time"

	"github.com/memsidecar/memsidecar/internal/memory"
)

// Transcript is a dialogue from the view of one of its speakers, whose words are considered.
type Transcript struct {
	Dialogue memory.Dialogue
	Speaker  string         // the user whose words are considered; the others' are context
	Location *time.Location // the speaker's time zone, for "tomorrow" and the like
	// Notes collects remarks about the reading, such as what was left out. It may be nil.
	Notes *Remarks
}

// Remarks are remarks for a consideration's reason. Each call has its own. A nil *Remarks ignores remarks.
type Remarks struct{ list []string }

// Add adds a remark.
func (n *Remarks) Add(remark string) {
	if n != nil {
		n.list = append(n.list, remark)
	}
}

// All returns the remarks, in order.
func (n *Remarks) All() []string {
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
	// Reading is what the decider found. A summariser that is the same component uses it instead of reading again. Optional.
	Reading any `json:"-"`
}

// Decider decides whether a dialogue holds anything worth remembering about its speaker.
type Decider interface {
	// Name is "rules", or the model as "provider/model". It is kept as provenance.
	Name() string
	// Decide is safe for concurrent use. An error means that it could not decide, never that there is nothing. A *memory.TransientError
	// is retried; any other error fails the consideration.
	Decide(ctx context.Context, t Transcript) (Verdict, error)
}

// Summarizer turns what is worth remembering into statements.
type Summarizer interface {
	// Name is "rules", or the model as "provider/model".
	Name() string
	// Summarize returns the statements in the order in which they were said, each in the third person and in the language of the
	// dialogue, based only on the speaker's own words or on what the speaker confirmed. The result may be empty. It is safe for
	// concurrent use; errors are as for Decide.
	Summarize(ctx context.Context, t Transcript, v Verdict) ([]memory.Statement, error)
}

// Reconciler compares new statements with existing memories and decides how each is stored.
type Reconciler interface {
	// Name is "rules", or the model as "provider/model".
	Name() string
	// Probes returns searches for memories that the statement may update, in addition to the search for its own words: "lives in
	// Beijing" shares no word with "moved to Shanghai".
	Probes(s memory.Statement) []Probe
	// Reconcile returns a resolution for each claim, in order. It is safe for concurrent use; errors are as for Decide.
	Reconcile(ctx context.Context, input ReconcileInput) ([]Resolution, error)
}

// Probe is a search by keywords.
type Probe struct {
	Query string
	Keep  func(m *memory.Memory) bool // which hits are candidates
}

// ReconcileInput is what one consideration wants to store.
type ReconcileInput struct {
	// Claims are in the order in which they were said. An earlier claim may be a target of a later one.
	Claims []Claim
}

// Claim is a statement with the candidates: existing memories that it may repeat or change.
type Claim struct {
	MemoryID  string // of the memory that it becomes when it is stored
	Statement memory.Statement
	Near      []Neighbor
}

// Neighbor is a current memory with the same visibility as the statement.
type Neighbor struct {
	Memory memory.Memory
	// Cosine is the semantic similarity. It is 0 without an embedding model: vectors of hashed n-grams compare spelling only.
	Cosine float64
}

// Resolution says how a statement is stored.
type Resolution struct {
	Action Treatment `json:"action"`
	// Targets are ids of candidates of the claim, or of earlier claims: none for TreatAdd, one for TreatSame and TreatOutdated.
	Targets []string `json:"targets,omitempty"`
	Reason  string   `json:"reason,omitempty"` // in words; empty for a new statement
	// Text replaces the statement's own text; only with TreatSupersede. "Strike milk off the list" leaves a list without milk.
	Text string `json:"text,omitempty"`
}

// Treatment is what is done with a statement.
type Treatment string

// The treatments.
const (
	TreatAdd       Treatment = "add"       // it is new
	TreatSame      Treatment = "same"      // it says what the target says, which is reinforced
	TreatSupersede Treatment = "supersede" // it replaces the targets
	TreatOutdated  Treatment = "outdated"  // it is stored as history, because the target was said later
	TreatWithdraw  Treatment = "withdraw"  // it asks to forget the targets, if any
)
