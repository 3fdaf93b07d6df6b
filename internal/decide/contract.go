package decide

import (
	"context"
	"slices"
	"time"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/vectorstore"
)

// Transcript is a dialogue from the view of one of its speakers, whose words are considered.
type Transcript struct {
	// Dialogue begins with the last turns of the conversation before the new messages, if there are any.
	Dialogue memory.Dialogue
	// Earlier is the number of these last turns' messages. They were considered before: they are context, and statements may rest on
	// them, but not on them alone.
	Earlier int
	// refs name messages from the first on, as Ref does: the earlier ones, and the new ones when they are of several considerations.
	refs     []string
	Speaker  string         // the user whose words are considered; the others' are context
	Location *time.Location // the speaker's time zone, for "tomorrow" and the like
	// Notes collects remarks about the reading, such as what was left out. It may be nil.
	Notes *Remarks
}

// New reports whether a message belongs to the new ones.
func (t Transcript) New(message int) bool { return message >= t.Earlier }

// LastTurns returns the transcript with at most the newest n of the earlier messages.
func (t Transcript) LastTurns(n int) Transcript {
	if cut := t.Earlier - n; cut > 0 {
		t.Dialogue.Messages, t.Earlier = t.Dialogue.Messages[cut:], n
		t.refs = t.refs[min(cut, len(t.refs)):]
	}
	return t
}

// CitesNew reports whether a statement rests on a new message.
func (t Transcript) CitesNew(s memory.Statement) bool {
	return t.cites(s, t.Earlier, len(t.Dialogue.Messages))
}

// CitesEarlier reports whether a statement rests on an earlier message.
func (t Transcript) CitesEarlier(s memory.Statement) bool { return t.cites(s, 0, t.Earlier) }

func (t Transcript) cites(s memory.Statement, from, to int) bool {
	for i := from; i < to; i++ {
		if slices.Contains(s.MessageIDs, t.Ref(i)) {
			return true
		}
	}
	return false
}

// Ref names a message in provenance: by its id, by its position among the new messages, or for a message of another consideration by
// that and its position there.
func (t Transcript) Ref(message int) string {
	switch {
	case message < len(t.refs):
		return t.refs[message]
	case message >= t.Earlier:
		if id := t.Dialogue.Messages[message].ID; id != "" {
			return id
		}
		return memory.PositionRef(message - t.Earlier)
	}
	return t.Dialogue.MessageRef(message)
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
	Remember bool
	Reason   string // in words, always set
}

// Gate decides whether a dialogue holds anything worth remembering about its speaker, before an Extractor is asked.
type Gate interface {
	// Name is the model as "provider/model".
	Name() string
	// Open is safe for concurrent use; errors are as for Extractor.Extract.
	Open(ctx context.Context, in Input) (Verdict, error)
}

// Extractor turns what was said into changes of memory.
type Extractor interface {
	// Name is "rules", or the model as "provider/model". It is kept as provenance.
	Name() string
	// Extract is safe for concurrent use. A *memory.TransientError means that the extractor cannot be asked now: the dialogue is
	// considered later. After any other error the local extractor is asked instead.
	Extract(ctx context.Context, in Input) (Extraction, error)
}

// Together is an Extractor that reads a dialogue once for several of its speakers.
type Together interface {
	Extractor
	// ExtractTogether returns for each input what Extract returns. The inputs differ in the speaker and the known memories alone. An
	// error means that nothing was read for anybody.
	ExtractTogether(ctx context.Context, inputs []Input) ([]Extraction, error)
}

// Input is what an Extractor reads.
type Input struct {
	Transcript
	// Known returns the memories of the speaker that the new messages may concern. They hold at the time of the dialogue, and have its
	// visibility: all of them when they are few, else the standing ones, those made of the last turns, and those nearest to the new messages. They are
	// in the order in which they were said.
	Known func() ([]Known, error)
}

// Known is a memory that the new messages may concern.
type Known struct {
	Memory memory.Memory
	// JustNow is set for a memory made of the last turns.
	JustNow bool
}

// Extraction is what an Extractor found.
type Extraction struct {
	Ops []Op // in the order in which the things were said
	// Reason says in words why something or nothing is to be remembered.
	Reason string
	// Dropped are proposed changes that cannot be used, with the reasons.
	Dropped []string
	// Private are the messages, as Transcript.Ref names them, that the speaker asked not to keep.
	Private []string
	// Checked is set when the statements are the speaker's own words or were checked against them.
	Checked bool
}

// Op is one change of memory.
type Op struct {
	Action OpAction
	// IDs are the memories concerned: those that are replaced, said again, or to be forgotten. Everything is all of the speaker's.
	IDs []string
	// Statement is what is to be stored; for OpForget its text says what is to be forgotten, for OpSame
	// what the memory says.
	Statement memory.Statement
	Reason    string // why it is not simply new; optional
	// Embedding is the statement's, if the extractor needed it; the zero value otherwise.
	Embedding vectorstore.Embedding
	// History is set for a statement that is outdated: IDs names the memory that was said later.
	History bool
}

// OpAction is what an Op does.
type OpAction string

// The actions of an Op.
const (
	OpAdd    OpAction = "add"    // the statement is new
	OpUpdate OpAction = "update" // the statement replaces the memories
	OpSame   OpAction = "same"   // the memory is said again
	OpForget OpAction = "forget" // the memories are to be forgotten
)

// Everything in Op.IDs means all memories of the speaker.
const Everything = "*"

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
