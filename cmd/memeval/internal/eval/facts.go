package eval

import (
	"context"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"
)

// How forgetting is measured, with the facts that *.questions.json names as text:
//
//   - A text matches a fact if it contains all words of the fact except stop words, in any case and order.
//   - After the last session two queries are made for each fact, the file's question and the fact itself, with ten hits each.
//   - A fact to be remembered is kept if a retrieved memory matches it.
//   - A fact that was retracted in a session is forgotten unless a retrieved memory matches it and cites a message of an earlier
//     session: the retraction itself may be remembered.
//
// Facts that the user never stated in these words do not count. To count as remembered, a fact must be in a turn marked as worth
// remembering; to count as forgotten, in such a turn of an earlier session. Facts that are retracted and stated again later do not
// count either. A sidecar that remembers nothing forgets everything, so the share of facts that a memory matched before is also reported.

// share counts a part of a whole.
type share struct{ part, whole int }

func (s *share) add(is bool) {
	s.whole++
	if is {
		s.part++
	}
}

// storedTexts are the memories' texts of a user, by session.
type storedTexts struct{ texts map[int][]string }

func newStoredTexts() *storedTexts { return &storedTexts{map[int][]string{}} }

func (h *storedTexts) add(text string, session int) {
	h.texts[session] = append(h.texts[session], text)
}

// before reports whether a fact was remembered before a session.
func (h *storedTexts) before(f fact) bool {
	for session, texts := range h.texts {
		if session < f.Session && slices.ContainsFunc(texts, f.matches) {
			return true
		}
	}
	return false
}

// stopWords are words without meaning for a fact.
var stopWords = map[string]bool{
	"a": true, "an": true, "the": true, "of": true, "in": true, "on": true, "at": true, "to": true, "for": true, "and": true, "my": true,
}

func words(text string) []string {
	return slices.DeleteFunc(strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }),
		func(word string) bool { return stopWords[word] })
}

// matches reports whether a text holds the fact.
func (f fact) matches(text string) bool {
	have := words(text)
	wanted := words(f.Text)
	return len(wanted) > 0 && !slices.ContainsFunc(wanted, func(word string) bool { return !slices.Contains(have, word) })
}

// wasSaid reports whether the user stated the fact, in a suitable session, in a turn worth remembering.
func (p *personaFile) wasSaid(f fact, fits func(session int) bool) bool {
	for i := range p.Sessions {
		s := &p.Sessions[i]
		if fits(s.ID) && slices.ContainsFunc(s.Conversation, func(t personaTurn) bool { return t.byUser() && t.Share && f.matches(t.Message) }) {
			return true
		}
	}
	return false
}

// toForget returns the facts that must be forgotten, each once: the last retraction counts.
func (a *expected) toForget() (facts []fact) {
	for _, f := range a.Forgotten {
		at := slices.IndexFunc(facts, f.same)
		again := slices.ContainsFunc(a.Kept, func(kept fact) bool { return kept.Session >= f.Session && kept.same(f) })
		switch {
		case again:
		case at < 0:
			facts = append(facts, f)
		case facts[at].Session < f.Session:
			facts[at] = f
		}
	}
	return facts
}

// toKeep returns the facts that must be remembered, each once.
func (a *expected) toKeep() (facts []fact) {
	for _, f := range a.Kept {
		if !slices.ContainsFunc(facts, f.same) {
			facts = append(facts, f)
		}
	}
	return facts
}

func (f fact) same(other fact) bool { return slices.Equal(words(f.Text), words(other.Text)) }

// missedFact is a fact that was wrongly not remembered or not forgotten.
type missedFact struct {
	Wrong    string   `json:"wrong"` // "not kept" or "not forgotten"
	File     string   `json:"file"`
	Session  int      `json:"session"`
	Fact     string   `json:"fact"`
	Memories []string `json:"memories,omitempty"`
}

// ask retrieves the facts of a persona.
func (r *personaRun) ask(ctx context.Context, p *personaFile, h *storedTexts) error {
	if p.Asked == nil {
		return nil
	}
	then := p.Sessions[len(p.Sessions)-1].time
	for _, f := range p.Asked.toKeep() {
		if !p.wasSaid(f, func(session int) bool { return session <= f.Session }) {
			r.unsaid++
			continue
		}
		every := func(*memsidecarv1.Memory) bool { return true }
		found, err := r.find(ctx, p, f, every, time.Time{})
		if err != nil {
			return err
		}
		asOf, err := r.find(ctx, p, f, every, then)
		if err != nil {
			return err
		}
		r.kept.add(len(found) > 0)
		r.then.kept.add(len(asOf) > 0)
		if len(found) == 0 {
			r.add(missedFact{"not kept", filepath.Base(p.Path), f.Session, f.Text, nil})
		}
	}
	for _, f := range p.Asked.toForget() {
		if !p.wasSaid(f, func(session int) bool { return session < f.Session }) {
			r.unsaid++
			continue
		}
		counts := func(m *memsidecarv1.Memory) bool { return citesBefore(m, f.Session) }
		stale, err := r.find(ctx, p, f, counts, time.Time{})
		if err != nil {
			return err
		}
		staleThen, err := r.find(ctx, p, f, counts, then)
		if err != nil {
			return err
		}
		r.forgotten.add(len(stale) == 0)
		r.then.forgotten.add(len(staleThen) == 0)
		if h.before(f) {
			r.forgottenRemembered.add(len(stale) == 0)
			r.then.forgottenRemembered.add(len(staleThen) == 0)
		}
		if len(stale) > 0 {
			r.add(missedFact{"not forgotten", filepath.Base(p.Path), f.Session, f.Text, stale})
		}
	}
	return nil
}

// find returns the retrieved texts that match a fact and count: those of current memories or, with a time, those of memories that were
// current then and are not superseded.
func (r *personaRun) find(ctx context.Context, p *personaFile, f fact, counts func(*memsidecarv1.Memory) bool, then time.Time) (texts []string, err error) {
	for _, query := range []string{f.Question, f.Text} {
		var answer retrieved
		if scope := direct(gateNamespace, p.Name, "", ""); then.IsZero() {
			answer, err = r.retrieve(ctx, scope, query)
		} else {
			answer, err = r.retrieveThen(ctx, scope, query, then)
		}
		if err == nil {
			err = answer.whole()
		}
		if err != nil {
			return nil, err
		}
		for _, m := range answer.GetMemories() {
			if text := m.GetMemory().GetText(); f.matches(text) && counts(m.GetMemory()) && !slices.Contains(texts, text) {
				texts = append(texts, text)
			}
		}
	}
	return texts, nil
}

// citesBefore reports whether a memory cites a message of an earlier session.
func citesBefore(m *memsidecarv1.Memory, session int) bool {
	return slices.ContainsFunc(m.GetProvenance().GetMessageIds(), func(id string) bool {
		number, _, _ := strings.Cut(strings.TrimPrefix(id, "s"), ":")
		n, err := strconv.Atoi(number)
		return err == nil && n < session
	})
}

func (r *personaRun) reportFacts() {
	for name, s := range map[string]share{
		"gate.kept": r.kept, "gate.forgotten": r.forgotten, "gate.forgotten_remembered": r.forgottenRemembered,
		"gate.then.kept": r.then.kept, "gate.then.forgotten": r.then.forgotten, "gate.then.forgotten_remembered": r.then.forgottenRemembered,
	} {
		if s.whole > 0 {
			r.report.share(name, ratio(s.part, s.whole))
			r.report[name+"_facts"] = s.whole
		}
	}
	if r.kept.whole+r.forgotten.whole > 0 {
		r.report["gate.unsaid_facts"] = r.unsaid
	}
}

// turnTime returns the time of the i-th turn.
func (s *personaSession) turnTime(i int) time.Time { return s.time.Add(time.Duration(i) * time.Second) }
