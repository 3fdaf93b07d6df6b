package model

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/memsidecar/memsidecar/internal/decide"
	"github.com/memsidecar/memsidecar/internal/lang/lexical"
	"github.com/memsidecar/memsidecar/internal/memory"
)

// ExplicitDetector finds what a speaker asks in so many words to have remembered ("请记住我对花生过敏").
type ExplicitDetector interface {
	// Explicit lists the requests, in the order in which they were made; none is the usual answer. Of each statement MessageIDs,
	// Quote and Kind are read: where what is to be remembered was said, its verbatim words, and what it is about. A request to
	// forget is a statement with Forget. It is safe for concurrent use and quick: it is asked by the Decider and by the
	// Summarizer.
	Explicit(ctx context.Context, t decide.Transcript) ([]memory.Statement, error)
}

// ExplicitBy is the detector that takes the explicit requests that a decider and its summariser find, for which
// internal/decide/rules can serve.
func ExplicitBy(decider decide.Decider, summarizer decide.Summarizer) ExplicitDetector {
	return explicitBy{decider, summarizer}
}

type explicitBy struct {
	decider    decide.Decider
	summarizer decide.Summarizer
}

func (e explicitBy) Explicit(ctx context.Context, t decide.Transcript) ([]memory.Statement, error) {
	v, err := e.decider.Decide(ctx, t)
	if err != nil || !v.Explicit {
		return nil, err
	}
	statements, err := e.summarizer.Summarize(ctx, t, v)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(statements, func(s memory.Statement) bool { return !s.Explicit }), nil
}

// request is something that the speaker asked to have remembered.
type request struct {
	messages []int  // where it was said, at least one of them the speaker's
	words    string // verbatim; empty: only the messages are known
	kind     memory.Kind
}

// detect asks the detector. A request that names no message of the speaker concerns the newest one. Requests to forget are passed on
// unchanged.
func detect(ctx context.Context, detector ExplicitDetector, t decide.Transcript) (out []request, forgets []memory.Statement, err error) {
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	if detector == nil {
		return nil, nil, nil
	}
	found, err := detector.Explicit(ctx, t)
	if err != nil {
		return nil, nil, fmt.Errorf("looking for explicit requests: %w", err)
	}
	for _, s := range found {
		if s.Forget {
			forgets = append(forgets, s)
			continue
		}
		r := request{words: strings.TrimSpace(s.Quote), kind: s.Kind}
		own := false
		for i, m := range t.Dialogue.Messages {
			if slices.Contains(s.MessageIDs, t.Ref(i)) {
				r.messages = append(r.messages, i)
				own = own || spokenBy(m, t.Speaker)
			}
		}
		if !own {
			newest := newestOf(t)
			if newest < 0 {
				continue
			}
			r.messages = []int{newest}
		}
		if !r.kind.Valid() {
			r.kind = memory.KindFact
		}
		out = append(out, r)
	}
	return out, forgets, nil
}

func newestOf(t decide.Transcript) int {
	for i, m := range slices.Backward(t.Dialogue.Messages) {
		if spokenBy(m, t.Speaker) {
			return i
		}
	}
	return -1
}

func requestReason(requests []request) string {
	reason := "the user asked for it to be remembered"
	if words := cutText(requests[0].words, 60); words != "" {
		reason += ": " + strconv.Quote(words)
	}
	if n := len(requests) - 1; n > 0 {
		reason += fmt.Sprintf("; and %d more", n)
	}
	return reason
}

// honour marks the statements that answer a request, and adds the words of every request that none answers.
//
// A verdict that is explicit although no request is known, because it is another decider's or there is no detector,
// counts as a request about all of the speaker's newest message or, when no statement rests on that, about all statements.
func honour(t decide.Transcript, v decide.Verdict, drafts []draft, requests []request) []draft {
	if newest := newestOf(t); len(requests) == 0 && v.Explicit && newest >= 0 {
		about := []int{newest}
		if len(drafts) > 0 && !slices.ContainsFunc(drafts, func(d draft) bool { return slices.Contains(d.cited, newest) }) {
			about = allCited(drafts) // "remember that": what was meant stands in earlier messages
		}
		requests = []request{{messages: about, kind: memory.KindFact}}
	}
	said := drafts
	for _, r := range requests {
		answered := false
		for i := range said {
			if r.answeredBy(t, said[i]) {
				answered = true
				drafts[i].Explicit, drafts[i].Importance, drafts[i].Reason = true, 1, r.reason(v)
			}
		}
		if !answered {
			drafts = append(drafts, r.verbatim(t, v))
		}
	}
	return drafts
}

func allCited(drafts []draft) []int {
	var all []int
	for _, d := range drafts {
		all = append(all, d.cited...)
	}
	return all
}

// answeredBy reports whether a statement fulfils the request. It has to cite one of the request's messages, and
//   - the model quotes words that overlap with the request's and hardly any others;
//   - or it quotes none of that message, and the request is at least half of the message;
//   - or a third of the request's terms are in the statement.
//
// In doubt a statement does not count: the words are then kept twice, and not lost.
func (r request) answeredBy(t decide.Transcript, d draft) bool {
	asked, given := squeeze(r.words), squeeze(d.given)
	cites := false
	for _, i := range r.messages {
		if !slices.Contains(d.cited, i) {
			continue
		}
		cites = true
		m := t.Dialogue.Messages[i]
		if !spokenBy(m, t.Speaker) {
			continue
		}
		if asked == "" {
			return true
		}
		content := squeeze(m.Content)
		at, quoted := strings.Index(content, asked), strings.Index(content, given)
		switch {
		case given == "" || quoted < 0 || at < 0:
			if 2*utf8.RuneCountInString(asked) >= utf8.RuneCountInString(content) {
				return true
			}
		case quoted < at+len(asked) && at < quoted+len(given):
			if utf8.RuneCountInString(given) <= 2*utf8.RuneCountInString(asked) {
				return true
			}
		}
	}
	return cites && (given != "" && strings.Contains(asked, given) || sharesTerms(r.words, d.Text))
}

// sharesTerms reports whether a third of the terms of the words are in the text.
func sharesTerms(words, text string) bool {
	held := map[string]bool{}
	for _, term := range lexical.Terms(text) {
		held[term] = true
	}
	terms := lexical.QueryTerms(words)
	shared := 0
	for _, term := range terms {
		if held[term] {
			shared++
		}
	}
	return len(terms) > 0 && 3*shared >= len(terms)
}

// squeeze is the text without spaces.
func squeeze(text string) string { return strings.Join(strings.Fields(text), "") }

// verbatim is a statement with the request's own words.
func (r request) verbatim(t decide.Transcript, v decide.Verdict) draft {
	d := draft{cited: r.messages}
	words := r.words
	for _, i := range r.messages {
		m := t.Dialogue.Messages[i]
		d.MessageIDs = append(d.MessageIDs, t.Ref(i))
		if m.Time.After(d.ObservedAt) {
			d.ObservedAt = m.Time
		}
		if r.words == "" && spokenBy(m, t.Speaker) {
			words = m.Content
		}
	}
	d.Text = saidBy(clean(words))
	d.Language = lexical.Language(d.Text)
	d.Kind, d.Importance, d.Explicit = r.kind, 1, true
	d.Quote = cutText(strings.TrimSpace(words), maxQuoteRunes)
	d.Reason = r.reason(v)
	return d
}

// reason is why a statement that answers this request is kept: the verdict's may name another request.
func (r request) reason(v decide.Verdict) string {
	if r.words == "" && v.Reason != "" {
		return v.Reason
	}
	return requestReason([]request{r})
}

// saidBy quotes words in the third person.
func saidBy(words string) string {
	before, after := `The user said: "`, `"`
	switch lexical.Language(words) {
	case chinese:
		before, after = "用户说：“", "”"
	case "ja":
		before, after = "ユーザーは「", "」と言った。"
	}
	return before + cutText(words, memory.MaxTextRunes-utf8.RuneCountInString(before+after)) + after
}
