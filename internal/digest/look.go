package digest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/memsidecar/memsidecar/internal/lang/lexical"
	"github.com/memsidecar/memsidecar/internal/llm"
	"github.com/memsidecar/memsidecar/internal/llm/answer"
	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/usage"
)

// waitingAtOnce is the number of messages read in one query.
const waitingAtOnce = 200

// Summarizer makes digests on request.
type Summarizer struct {
	Digests *Service
	// Considerer considers the user's pending messages, because a digest includes the memories that result.
	Considerer interface {
		ConsiderUser(ctx context.Context, user memory.User) error
	}
}

// Summarize considers the user's pending messages, makes the digest of a day and returns it.
func (s *Summarizer) Summarize(ctx context.Context, v Viewer, date, language string) (Day, error) {
	if err := s.Considerer.ConsiderUser(ctx, v.User); err != nil {
		return Day{}, err
	}
	return s.Digests.Summarize(ctx, v, date, language)
}

// Summarize reads the pending messages of a day, even if digests are made on request only, and returns the day's digest.
func (k *Service) Summarize(ctx context.Context, v Viewer, date, language string) (Day, error) {
	settings, err := k.Settings.Get(ctx, v.User)
	if err != nil {
		return Day{}, err
	}
	if settings.Paused {
		return Day{}, fmt.Errorf("%w: remembering is paused for this user", memory.ErrPrecondition)
	}
	from, before, err := k.period(settings, date)
	if err != nil {
		return Day{}, err
	}
	running, done, err := k.take(ctx, v.User)
	if err != nil {
		return Day{}, err
	}
	err = k.look(running, v.User, settings, PendingQuery{From: from, Before: before})
	done()
	if errors.Is(err, context.Canceled) && ctx.Err() == nil { // the user is being forgotten
		err = memory.ErrNotFound
	}
	if err != nil {
		return Day{}, err
	}
	return k.Get(ctx, v, date, language)
}

// look reads all pending messages.
func (k *Service) look(ctx context.Context, user memory.User, settings memory.Settings, q PendingQuery) error {
	ctx = usage.WithUser(ctx, user)
	q.Limit = waitingAtOnce
	zone := settings.Location(k.options.Location)
	days := map[string]bool{}
	for {
		if err := k.remember(ctx, user); err != nil {
			return err
		}
		w, err := k.Store.Pending(ctx, user, q)
		if err != nil {
			return err
		}
		if len(w.Messages) == 0 {
			break
		}
		c, err := k.contribution(ctx, w, zone)
		if err != nil {
			return err
		}
		if err := k.Store.Save(ctx, c); err != nil && !errors.Is(err, ErrChanged) {
			return err
		}
		for _, m := range w.Messages {
			days[m.Time.In(zone).Format(time.DateOnly)] = true
		}
	}
	if k.Changed != nil && len(days) > 0 {
		var list []string
		for day := range days {
			list = append(list, day)
		}
		slices.Sort(list)
		k.Changed(ctx, user, list)
	}
	return nil
}

// contribution returns the findings of the first piece of the pending messages.
func (k *Service) contribution(ctx context.Context, w Pending, zone *time.Location) (Contribution, error) {
	day := w.Messages[0].Time.In(zone).Format(time.DateOnly)
	end := slices.IndexFunc(w.Messages, func(m Message) bool { return m.Time.In(zone).Format(time.DateOnly) != day })
	if end < 0 {
		end = len(w.Messages)
	}
	piece := Piece{Scope: w.Scope, Messages: cutPiece(w.Messages[:end], k.options.MaxTokens), Location: zone}
	c := Contribution{Scope: w.Scope, At: k.options.Now()}
	var text strings.Builder
	hash := sha256.New()
	for _, m := range piece.Messages {
		c.Covers = append(c.Covers, m.Ref)
		fmt.Fprintln(hash, m.Ref)
		text.WriteString(m.Content + "\n")
	}
	c.ID = "dig_" + hex.EncodeToString(hash.Sum(nil)[:12])
	piece.Language = lexical.Language(text.String())
	if err := k.withoutEchoes(ctx, &piece); err != nil {
		return c, err
	}
	if !slices.ContainsFunc(piece.Messages, func(m Message) bool { return m.Role == memory.RoleUser && strings.TrimSpace(m.Content) != "" }) {
		c.MadeBy = k.Rules.Name()
		return c, nil // bot messages without a user belong to no user's day
	}
	from, before, err := dateOf(day, zone)
	if err != nil {
		return c, err
	}
	entries, err := k.Store.Find(ctx, w.Scope.User(), Seen{Audience: memory.VisibilityChannel.AudienceOf(w.Scope.Channel)}, from, before)
	if err != nil {
		return c, err
	}
	for _, e := range entries {
		if e.MemoryID != "" {
			piece.Known = append(piece.Known, e.remembered())
		}
	}
	findings, madeBy, err := k.extract(ctx, piece)
	if err != nil {
		return c, err
	}
	c.MadeBy = madeBy
	if madeBy != k.Rules.Name() { // the rules quote
		var left int
		if findings, left = supportedFindings(findings, &piece); left > 0 {
			k.options.Log.Warn("findings about a digest have names, numbers or dates that nobody said, and are left out", "model", madeBy, "findings", left)
		}
	}
	c.Findings = k.checked(findings, &piece, day)
	return c, nil
}

// withoutEchoes removes text that Retrieve returned from a piece.
func (k *Service) withoutEchoes(ctx context.Context, p *Piece) error {
	if k.Echoes == nil {
		return nil
	}
	d := memory.Dialogue{Scope: p.Scope}
	for i := range p.Messages {
		d.Messages = append(d.Messages, p.Messages[i].Message)
	}
	d, removed, err := k.Echoes.Clean(ctx, p.Scope.User(), d)
	if err != nil || removed == 0 {
		return err
	}
	p.Messages = slices.Clone(p.Messages)
	for i := range p.Messages {
		p.Messages[i].Message = d.Messages[i]
	}
	return nil
}

// extract asks the extractor, or the rules when its answers cannot be used or its token budget is used up.
func (k *Service) extract(ctx context.Context, p Piece) ([]Finding, string, error) {
	found, err := k.Extractor.Extract(ctx, p)
	var transient *memory.TransientError
	unusable := errors.Is(err, answer.ErrUnusable) || errors.Is(err, llm.ErrBlocked) || errors.Is(err, llm.ErrNoAnswer)
	if _, over := errors.AsType[*memory.BudgetError](err); over {
		found, err = k.Rules.Extract(ctx, p)
		return found, k.Rules.Name(), err
	}
	if err != nil && unusable && !errors.As(err, &transient) {
		k.options.Log.Warn("a model's answer about a digest cannot be used; the rules look instead", "model", k.Extractor.Name(), "error", err)
		found, err = k.Rules.Extract(ctx, p)
		return found, k.Rules.Name(), err
	}
	return found, k.Extractor.Name(), err
}

// checked completes findings and sets their importance.
func (k *Service) checked(findings []Finding, p *Piece, day string) []Finding {
	last := p.Messages[len(p.Messages)-1].Time
	var kept []Finding
	for _, f := range findings {
		f.Text, f.Key, f.Solution = shortened(f.Text, MaxTextRunes), shortened(f.Key, MaxKeyRunes), shortened(f.Solution, MaxTextRunes)
		f.Statement = shortened(f.Statement, MaxTextRunes)
		if f.Text == "" {
			continue
		}
		if f.Language == "" {
			f.Language = p.Language
		}
		if f.SaidAt.IsZero() {
			f.SaidAt = last
		}
		if f.Kind == "" {
			f.Kind = kinds[f.Category]
		}
		if p.leavesToConsidering(&f) {
			f.Passing, f.Importance = true, 0
		}
		k.score(&f, day)
		if f.Category == Issue && f.Solution == "" {
			f.Importance = 0 // a question without an answer is not worth remembering
		}
		if f.Category == Issue && f.Solution != "" && f.Statement == "" {
			f.Statement = solved(f.Language, f.Text, f.Solution)
		}
		f.AgentID = p.agentOf(&f)
		kept = append(kept, f)
	}
	return kept
}

// score sets the importance of a finding, unless it is set already or the finding is never remembered.
func (k *Service) score(f *Finding, day string) {
	if f.Category == Topic || f.Importance != 0 || f.Passing {
		return
	}
	text := f.Text
	switch f.Category {
	case Preference:
		text = f.remembered()
	case Issue:
		text += " " + f.Solution
	case Topic, Decision, Task, Insight:
	}
	if important, importance, reason := k.Scorer.Score(text, f.Category); important {
		f.Importance, f.Reason = importance, fmt.Sprintf("digest of %s: %s", day, reason)
	}
}

// leavesToConsidering reports whether considering decides if a finding becomes a memory: it reads the same messages for preferences,
// decisions and tasks.
func (p *Piece) leavesToConsidering(f *Finding) bool {
	if f.Category != Preference && f.Category != Decision && f.Category != Task {
		return false
	}
	considered := false
	for i := range p.Messages {
		m := &p.Messages[i]
		if m.Role != memory.RoleUser || !slices.Contains(f.MessageIDs, m.Name()) {
			continue
		}
		if !m.Considered {
			return false
		}
		considered = true
	}
	return considered
}

// agentOf returns the agent of the cited messages. A question may name no agent while its answer does.
func (p *Piece) agentOf(f *Finding) (agent string) {
	if len(f.MessageIDs) == 0 {
		return p.Scope.AgentID
	}
	for i := range p.Messages {
		if m := &p.Messages[i]; agent == "" && slices.Contains(f.MessageIDs, m.Name()) {
			agent = m.AgentID
		}
	}
	return agent
}

// kinds are the memory kinds of findings.
var kinds = map[Category]memory.Kind{
	Preference: memory.KindPreference, Decision: memory.KindDecision, Task: memory.KindTask, Issue: memory.KindProblem,
	Insight: memory.KindFact,
}

// categories are the digest categories of considered memories.
var categories = map[memory.Kind]Category{
	memory.KindFact: Insight, memory.KindPreference: Preference, memory.KindRelationship: Insight, memory.KindPlan: Task,
	memory.KindAppointment: Task, memory.KindDecision: Decision, memory.KindExperience: Insight, memory.KindTask: Task,
	memory.KindProblem: Issue, memory.KindRequest: Preference,
}

// solved words a question and its answer as a memory.
func solved(language, question, solution string) string {
	if language == "zh" || language == "ja" {
		return "用户的问题：" + question + " 解决办法：" + solution
	}
	return "The user's problem: " + question + " Solution: " + solution
}

// shortened returns a text on one line with at most so many characters.
func shortened(text string, most int) string {
	text = memory.CleanText(text)
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return text
}
