// Package local extracts without a model. A memory is what the user said, word for word: see quote.go. A classifier tells which
// sentences to keep, and which ask to forget or not to save something (internal/decide/classify).
package local

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/memsidecar/memsidecar/internal/decide"
	"github.com/memsidecar/memsidecar/internal/decide/classify"
	"github.com/memsidecar/memsidecar/internal/memory"
)

// lastMessages is how many of the last turns' messages are read: the question that an answer belongs to, what is corrected, and what is
// taken back.
const lastMessages = 6

// Options configure an Extractor. The zero value has the defaults.
type Options struct {
	// Least is the probability from which a sentence is kept, 0 to 1; 0 is DefaultLeast.
	Least float64
	// MaxStatements is how many statements one dialogue may yield about one speaker; 0 is DefaultMaxStatements. The most probable are kept.
	MaxStatements int
	// MaxRunes is the longest statement, in characters; 0 is DefaultMaxRunes.
	MaxRunes int
	// OnlyForget is set to compare statements with existing memories only to find equal texts, and for requests to forget.
	OnlyForget bool
	// Signals are phrases by which an operator has sentences kept or left out.
	Signals []Signal
}

// Defaults of Options.
const (
	DefaultLeast         = .55
	DefaultMaxStatements = 20
	DefaultMaxRunes      = 500
)

// Extractor implements decide.Extractor and decide.Gate.
type Extractor struct {
	model   Classifier
	options Options
}

// Classifier is what a classify.Model does.
type Classifier interface {
	Read(u classify.Unit) classify.Reading
	// Why names the words that weigh most for a label, the heaviest first.
	Why(u classify.Unit, label classify.Label, most int) []string
}

var _ decide.Extractor = (*Extractor)(nil)

// New returns an Extractor.
func New(model Classifier, o Options) *Extractor {
	if o.Least == 0 {
		o.Least = DefaultLeast
	}
	if o.MaxStatements == 0 {
		o.MaxStatements = DefaultMaxStatements
	}
	if o.MaxRunes == 0 {
		o.MaxRunes = DefaultMaxRunes
	}
	return &Extractor{model, o}
}

// Name implements decide.Extractor.
func (*Extractor) Name() string { return "rules" }

// Extract implements decide.Extractor.
func (e *Extractor) Extract(ctx context.Context, in decide.Input) (decide.Extraction, error) {
	if err := ctx.Err(); err != nil {
		return decide.Extraction{}, err
	}
	r := e.read(in.LastTurns(lastMessages))
	found := decide.Extraction{Private: r.private, Reason: r.reason(), Checked: true}
	if len(r.kept) == 0 && len(r.commands) == 0 {
		return found, nil
	}
	known, err := in.Known()
	if err != nil {
		return found, fmt.Errorf("comparing with existing memories: %w", err)
	}
	found.Ops = newMatcher(r.t, known, e.options.OnlyForget, e).ops(r)
	return found, nil
}

// alone reports whether a text is understood, and worth keeping, without what stood beside it.
func (e *Extractor) alone(text string) bool {
	r := e.model.Read(classify.Unit{Message: text, End: len(text), Count: 1})
	return r.Keep() >= e.options.Least && r.Has("p") < .25
}

// Private returns the messages that the speaker asked not to keep.
func (e *Extractor) Private(_ context.Context, in decide.Input) ([]string, error) {
	return e.read(in.LastTurns(lastMessages)).private, nil
}

// Statements returns what is worth keeping of a transcript, without comparing it with existing memories.
func (e *Extractor) Statements(t decide.Transcript) []memory.Statement {
	var list []memory.Statement
	for _, k := range e.read(t).kept {
		list = append(list, k.statement)
	}
	return list
}

// Urgent reports whether the speaker asks in the new messages to remember, to forget or not to save something, or corrects something.
func (e *Extractor) Urgent(t decide.Transcript) bool {
	for _, s := range e.sentences(t) {
		if t.New(s.message) && (s.Is(commandLabels...) >= likely || max(s.Has("remember"), s.Has("correction")) >= likely) {
			return true
		}
	}
	return false
}

// Chance returns the probability that the new messages hold anything that changes memory.
func (e *Extractor) Chance(t decide.Transcript) float64 {
	most := 0.0
	for _, s := range e.sentences(t) {
		if t.New(s.message) {
			most = max(most, s.Keep()+s.Is(commandLabels...))
		}
	}
	return most
}

// likely is the probability from which a command or a flag is believed.
const likely = .5

// answers is the share of Options.Least from which an answer to the bot's question is kept: it has few words to tell by.
const answers = .75

// certain is the probability from which everything is forgotten.
const certain = .5

// hangs is the probability from which a sentence is believed to need what was said before: words too many do less harm than a pronoun that
// nobody understands.
const hangs = .25

var (
	forgetLabels  = []classify.Label{classify.ForgetLast, classify.ForgetNamed, classify.ForgetAbout, classify.ForgetAll}
	privateLabels = []classify.Label{classify.PrivateThis, classify.PrivateBefore, classify.PrivateAfter}
	commandLabels = slices.Concat([]classify.Label{classify.Remember}, forgetLabels, privateLabels)
)

// sentence is a sentence of the speaker.
type sentence struct {
	classify.Unit
	classify.Reading

	message int // position in the dialogue
	points  int // of the operator's signals
	kind    memory.Kind
}

// openEnd is what a statement does not end with: a question that follows after a comma is a sentence of its own.
const openEnd = " ,，、"

// maxSentences is how many sentences of one message are read.
const maxSentences = 200

// sentences classifies what the speaker said.
func (e *Extractor) sentences(t decide.Transcript) []sentence {
	var list []sentence
	var bot, user string
	for i, m := range t.Dialogue.Messages {
		switch {
		case m.Role == memory.RoleAssistant:
			bot = m.Content
		case m.Role == memory.RoleUser && m.Speaker == t.Speaker:
			reply := ""
			if i+1 < len(t.Dialogue.Messages) && t.Dialogue.Messages[i+1].Role == memory.RoleAssistant {
				reply = t.Dialogue.Messages[i+1].Content
			}
			for _, u := range classify.Units(m.Content, bot, user, reply, maxSentences) {
				s := sentence{Unit: u, Reading: e.model.Read(u), message: i}
				s.points, s.kind = e.signals(u.Text())
				list = append(list, s)
			}
			user = m.Content
		}
	}
	return list
}

// kept is a sentence to keep, with what it becomes.
type kept struct {
	sentence

	chance     float64
	corrects   float64 // the probability that it replaces what was just said
	updates    float64 // the probability that it changes what held before
	correction bool    // it replaces what was just said
	update     bool    // it changes what held before
	explicit   bool
	hanging    bool // it is not understood without what was said before
	statement  memory.Statement
}

// command is a request to forget.
type command struct {
	sentence

	label classify.Label
	at    int // how many statements were kept before it
	// aside is set for a request not to save something: it withdraws what it names, if anything.
	aside bool
}

// read is what a transcript says about its speaker.
type read struct {
	t         decide.Transcript
	sentences []sentence
	kept      []kept
	commands  []command
	private   []string
	secret    bool // a sentence held nothing else
}

func (e *Extractor) read(t decide.Transcript) *read {
	r := &read{t: t, sentences: e.sentences(t)}
	private := r.privateMessages()
	order := make([]int, 0, len(private))
	for i := range private {
		order = append(order, i)
	}
	slices.Sort(order)
	for _, i := range order {
		r.private = append(r.private, t.Ref(i))
	}
	said := e.asked(r, private)
	for i, s := range r.sentences {
		if t.New(s.message) && s.Is(privateLabels...) >= likely && s.Is(classify.PrivateAfter) < likely {
			r.commands = append(r.commands, command{sentence: s, label: classify.ForgetNamed, at: len(r.kept), aside: true})
		}
		if !t.New(s.message) || private[s.message] {
			continue
		}
		if label, ok := s.forgets(); ok {
			r.commands = append(r.commands, command{sentence: s, label: label, at: len(r.kept)})
			continue
		}
		explicit := said[i]
		chance := s.Keep() * pow(3, s.points)
		least := e.options.Least
		if s.Has("q") >= likely {
			least *= answers
		}
		if s.Is(commandLabels...) > max(.4, s.Keep()) || !explicit && chance < least {
			continue
		}
		k := kept{
			sentence: s, chance: chance, explicit: explicit,
			corrects: s.Has("correction"), correction: s.Has("correction") >= .35, updates: s.Has("update"), update: s.Has("update") >= .35,
			hanging: s.Has("p") >= hangs,
		}
		if e.compose(r, &k, i) {
			r.kept = append(r.kept, k)
		}
	}
	r.limit(e.options.MaxStatements)
	for i := range r.kept {
		s := &r.kept[i].statement
		s.Text, s.Quote = strings.TrimRight(s.Text, openEnd), strings.TrimRight(s.Quote, openEnd)
	}
	return r
}

func pow(x float64, n int) float64 {
	y := 1.0
	for range max(n, -n) {
		y *= x
	}
	if n < 0 {
		return 1 / y
	}
	return y
}

// limit keeps the most probable statements, in the order in which they were said.
func (r *read) limit(most int) {
	if len(r.kept) <= most {
		return
	}
	chances := make([]float64, len(r.kept))
	for i, k := range r.kept {
		chances[i] = k.chance
		if k.explicit {
			chances[i] = 2
		}
	}
	slices.Sort(chances)
	least := chances[len(chances)-most]
	r.kept = slices.DeleteFunc(r.kept, func(k kept) bool { return !k.explicit && k.chance < least })
}

// forgets reports whether a sentence asks to forget something, and what.
func (s sentence) forgets() (classify.Label, bool) {
	if s.Is(forgetLabels...) < likely {
		return "", false
	}
	best := forgetLabels[0]
	for _, l := range forgetLabels[1:] {
		if s.Is(l) > s.Is(best) {
			best = l
		}
	}
	if best == classify.ForgetAll && s.Is(best) < certain {
		best = classify.ForgetNamed // to forget everything by mistake is worse than to be asked again
	}
	return best, true
}

// privateMessages returns the messages that the speaker asked not to keep.
func (r *read) privateMessages() map[int]bool {
	private := map[int]bool{}
	var spoken []int // messages of the speaker
	for i, s := range r.sentences {
		if i == 0 || s.message != r.sentences[i-1].message {
			spoken = append(spoken, s.message)
		}
	}
	for _, s := range r.sentences {
		if s.Is(privateLabels...) < likely {
			continue
		}
		at := slices.Index(spoken, s.message)
		this, before, after := s.Is(classify.PrivateThis), s.Is(classify.PrivateBefore), s.Is(classify.PrivateAfter)
		switch {
		case after >= max(this, before):
			if at+1 < len(spoken) && r.t.New(spoken[at+1]) {
				private[spoken[at+1]] = true
			}
		case !r.t.New(s.message):
		case before >= this && at > 0:
			private[spoken[at-1]] = true
		default:
			private[s.message] = true
		}
	}
	return private
}

// asked returns the sentences that the speaker asks to remember: those that say so, and those that a bare request refers to.
func (e *Extractor) asked(r *read, private map[int]bool) map[int]bool {
	asked := map[int]bool{}
	for i, s := range r.sentences {
		if !r.t.New(s.message) || private[s.message] {
			continue
		}
		if s.Has("remember") >= likely && s.Is(commandLabels...) < likely {
			asked[i] = true
		}
		if s.Is(classify.Remember) < likely {
			continue
		}
		// What follows in the same message, what precedes it there, or the message before.
		found := false
		for _, k := range []int{i + 1, i - 1} {
			if !found && k >= 0 && k < len(r.sentences) && r.sentences[k].message == s.message && r.sentences[k].Is(commandLabels...) < likely {
				asked[k], found = true, true
			}
		}
	}
	return asked
}

func (r *read) reason() string {
	switch {
	case len(r.kept) > 0:
		return r.kept[0].statement.Reason
	case len(r.commands) > 0:
		return "the user asked to forget something"
	case len(r.private) > 0:
		return "the user asked not to remember this"
	case r.secret:
		return "nothing is left of it after removing secrets"
	}
	var labels []string
	for _, s := range r.sentences {
		if r.t.New(s.message) {
			if label := string(s.Label()); !slices.Contains(labels, label) {
				labels = append(labels, label)
			}
		}
	}
	if len(labels) == 0 {
		return "the speaker said nothing"
	}
	return "nothing worth remembering: " + strings.Join(labels, ", ")
}
