package eval

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"
)

// LoCoMoOptions are the options of LoCoMo.
type LoCoMoOptions struct {
	File    string
	Sources []string // of sourceNames; all if empty
	Misses  Misses
}

// The sources whose recall is measured, in order.
const (
	sourceMessages = "messages"
	sourceMemories = "memories"
	sourceBoth     = "both"
)

// sourceNames lists the sources whose recall is measured.
func sourceNames() []string { return []string{sourceMessages, sourceMemories, sourceBoth} }

var (
	ks         = []int{1, 3, 5, 10}
	categories = map[int]string{1: "multi_hop", 2: "temporal", 3: "open_domain", 4: "single_hop", 5: "adversarial"}
)

const all = "all"

// categoryName returns the name of a question's category.
func categoryName(category int) string {
	return cmp.Or(categories[category], fmt.Sprintf("category_%d", category))
}

// LoCoMo replays a file of LoCoMo's format and measures how much of the evidence of its questions is found.
//
// Each conversation is a namespace. The first speaker is the user, the second one the user's bot under its name. Each LoCoMo session
// is a session: its messages are appended with their times and considered once. Then the roles are swapped, so that both speakers have
// memories. Recall at k is the mean, over the questions with evidence, of the share of evidence turns that are among the first k hits.
// A message hit stands for its turn, a memory hit for the turns that it cites. Both speakers' memories are merged by score. For both
// sources, messages of the first speaker's index and memories are merged by score.
func LoCoMo(ctx context.Context, s *Sidecar, o LoCoMoOptions) (Report, error) {
	conversations, err := readLoCoMo(o.File)
	if err != nil {
		return nil, err
	}
	if len(o.Sources) == 0 {
		o.Sources = sourceNames()
	}
	l := &locomo{Sidecar: s, LoCoMoOptions: o, report: Report{
		kindName: string(KindLoCoMo), "file": filepath.Base(o.File), "conversations": len(conversations),
	}, recalls: map[string]*mean{}, took: map[string][]time.Duration{}}
	if err := l.replay(ctx, conversations); err != nil {
		return nil, err
	}
	if err := s.WaitIdle(ctx); err != nil {
		return nil, err
	}
	if err := l.ask(ctx, conversations); err != nil {
		return nil, err
	}
	for name, m := range l.recalls {
		l.report.share(name, m.value())
	}
	for source, took := range l.took {
		l.report.latencies("latency."+source, took)
	}
	return l.report, nil
}

// locomo is one run.
type locomo struct {
	*Sidecar
	LoCoMoOptions
	report  Report
	recalls map[string]*mean
	took    map[string][]time.Duration
}

// mean accumulates a mean.
type mean struct {
	sum float64
	n   int
}

func (m *mean) add(value float64) { m.sum, m.n = m.sum+value, m.n+1 }
func (m *mean) value() float64    { return m.sum / float64(m.n) }

// namespace returns a conversation's namespace. Its id may contain characters that a namespace must not.
func namespace(number int) string { return fmt.Sprintf("locomo/%d", number+1) }

func (l *locomo) measures(source string) bool { return slices.Contains(l.Sources, source) }

func (l *locomo) replay(ctx context.Context, conversations []conversation) error {
	sessions, turns, memories := 0, 0, 0
	for _, c := range conversations {
		sessions += len(c.Sessions)
	}
	step, done := l.Progress(sessions, "sessions replayed")
	defer done()
	for i, c := range conversations {
		for _, t := range c.Sessions {
			if len(t.Turns) == 0 {
				continue
			}
			turns += len(t.Turns)
			remembered, err := l.session(ctx, namespace(i), c, t)
			if err != nil {
				return fmt.Errorf("conversation %s: %w", c.ID, err)
			}
			memories += remembered
			step()
		}
	}
	l.report["sessions"], l.report["turns"], l.report["memories"] = sessions, turns, memories
	return nil
}

// session replays a session for each of the two speakers and returns the number of new memories.
func (l *locomo) session(ctx context.Context, namespace string, c conversation, t talk) (memories int, err error) {
	for user := range c.Speakers {
		scope := l.scope(namespace, c, user, t.Number)
		messages := make([]*memsidecarv1.Message, len(t.Turns))
		for i, said := range t.Turns {
			messages[i] = said.message(user)
		}
		if user == 0 {
			if _, err := l.Sessions.AppendMessages(ctx, &memsidecarv1.AppendMessagesRequest{Scope: scope, Messages: messages}); err != nil {
				return 0, err
			}
		}
		if !l.measures(sourceMemories) && !l.measures(sourceBoth) {
			break
		}
		// The ids identify the messages as those appended before.
		outcome, err := l.consider(ctx, scope, messages)
		if err != nil {
			return 0, err
		}
		for _, change := range outcome.GetChanges() {
			if change.GetAction() == memsidecarv1.MemoryAction_MEMORY_ACTION_ADDED {
				memories++
			}
		}
	}
	return memories, nil
}

// scope returns the direct chat of one speaker with the other as the bot; session 0 is none.
func (l *locomo) scope(namespace string, c conversation, user, session int) *memsidecarv1.Scope {
	id := ""
	if session > 0 {
		id = fmt.Sprintf("%s/%d", c.Speakers[user], session)
	}
	return direct(namespace, c.Speakers[user], c.Speakers[1-user], id)
}

func (t turn) message(user int) *memsidecarv1.Message {
	role := memsidecarv1.Role_ROLE_USER
	if t.By != user {
		role = memsidecarv1.Role_ROLE_ASSISTANT
	}
	return message(t.ID, role, t.Text, t.Time)
}

func (l *locomo) ask(ctx context.Context, conversations []conversation) error {
	total, without, unknown := 0, 0, 0
	for _, c := range conversations {
		total += len(c.Questions)
	}
	step, done := l.Progress(total, "questions asked")
	defer done()
	for i, c := range conversations {
		said := map[string]bool{}
		for _, s := range c.Sessions {
			for _, t := range s.Turns {
				said[t.ID] = true
			}
		}
		for _, q := range c.Questions {
			step()
			if len(q.Evidence) == 0 {
				without++
				continue
			}
			if slices.ContainsFunc(q.Evidence, func(id string) bool { return !said[id] }) {
				unknown++
			}
			if err := l.question(ctx, i, c, q); err != nil {
				return fmt.Errorf("conversation %s, %q: %w", c.ID, q.Text, err)
			}
			for _, name := range []string{all, categoryName(q.Category)} {
				n, _ := l.report["questions."+name].(int)
				l.report["questions."+name] = n + 1
			}
		}
	}
	l.report["questions"], l.report["questions_without_evidence"], l.report["questions_with_unknown_evidence"] = total, without, unknown
	return nil
}

// hit is a hit with the turns that it represents.
type hit struct {
	score float64
	turns []string
}

func ofMessages(found []*memsidecarv1.RetrievedMessage) (hits []hit) {
	for _, m := range found {
		hits = append(hits, hit{m.GetScore(), []string{m.GetMessage().GetMessage().GetId()}})
	}
	return hits
}

func ofMemories(found []*memsidecarv1.RetrievedMemory) (hits []hit) {
	for _, m := range found {
		hits = append(hits, hit{m.GetScore(), m.GetMemory().GetProvenance().GetMessageIds()})
	}
	return hits
}

// merged merges lists, each best first, into one.
func merged(lists ...[]hit) []hit {
	hits := slices.Concat(lists...)
	slices.SortStableFunc(hits, func(a, b hit) int { return cmp.Compare(b.score, a.score) })
	return hits
}

// question retrieves one question from each source.
func (l *locomo) question(ctx context.Context, number int, c conversation, q question) error {
	const messages, memories = memsidecarv1.RetrieveSource_RETRIEVE_SOURCE_MESSAGES, memsidecarv1.RetrieveSource_RETRIEVE_SOURCE_MEMORIES
	ask := func(source string, user int, from ...memsidecarv1.RetrieveSource) (retrieved, error) {
		answer, err := l.retrieve(ctx, l.scope(namespace(number), c, user, 0), q.Text, from...)
		if err == nil {
			err = answer.whole()
		}
		if err == nil {
			l.took[source] = append(l.took[source], answer.took)
		}
		return answer, err
	}
	if l.measures(sourceMessages) {
		answer, err := ask(sourceMessages, 0, messages)
		if err != nil {
			return err
		}
		l.note(sourceMessages, c, q, ofMessages(answer.GetMessages()))
	}
	if !l.measures(sourceMemories) && !l.measures(sourceBoth) {
		return nil
	}
	second, err := ask(sourceMemories, 1, memories)
	if err != nil {
		return err
	}
	if l.measures(sourceMemories) {
		first, err := ask(sourceMemories, 0, memories)
		if err != nil {
			return err
		}
		l.note(sourceMemories, c, q, merged(ofMemories(first.GetMemories()), ofMemories(second.GetMemories())))
	}
	if l.measures(sourceBoth) {
		first, err := ask(sourceBoth, 0, messages, memories)
		if err != nil {
			return err
		}
		l.note(sourceBoth, c, q, merged(ofMessages(first.GetMessages()), ofMemories(first.GetMemories()), ofMemories(second.GetMemories())))
	}
	return nil
}

// note records the score of an answer.
func (l *locomo) note(source string, c conversation, q question, hits []hit) {
	places := map[string]int{} // rank of each turn, from 0
	for place, h := range hits {
		for _, id := range h.turns {
			if _, known := places[id]; !known {
				places[id] = place
			}
		}
	}
	for _, k := range ks {
		found := 0
		for _, id := range q.Evidence {
			if place, ok := places[id]; ok && place < k {
				found++
			}
		}
		for _, category := range []string{all, categoryName(q.Category)} {
			name := recallName(source, category, k)
			if l.recalls[name] == nil {
				l.recalls[name] = &mean{}
			}
			l.recalls[name].add(float64(found) / float64(len(q.Evidence)))
		}
		if k == depth && found < len(q.Evidence) {
			l.Misses.add(missedQuestion{
				Source: source, Conversation: c.ID, Question: q.Text, Category: categoryName(q.Category),
				Evidence: q.Evidence, Found: found, Hits: turnsOf(hits[:min(k, len(hits))]),
			})
		}
	}
}

func turnsOf(hits []hit) [][]string {
	turns := make([][]string, len(hits))
	for i, h := range hits {
		turns[i] = h.turns
	}
	return turns
}

func recallName(source, category string, k int) string {
	return fmt.Sprintf("recall.%s.%s.at%d", source, category, k)
}

// locomo returns the tables of recall by source and category, and of latencies.
func (c cells) locomo() []Table {
	recall := Table{Words: 2, Columns: []string{"source", "questions", "number"}}
	for _, k := range ks {
		recall.Columns = append(recall.Columns, fmt.Sprintf("R@%d", k))
	}
	latency := Table{Words: 1, Columns: []string{"Retrieve from", "p50 ms", "p90 ms", "p99 ms"}}
	for _, source := range sourceNames() {
		for _, category := range c.report.categories() {
			n, _ := c.report.number("questions." + category)
			row := []string{source, strings.ReplaceAll(category, "_", "-"), fmt.Sprint(n)}
			for _, k := range ks {
				row = append(row, c.show(recallName(source, category, k), thousandths))
			}
			if row[len(row)-1] != "" {
				recall.Rows = append(recall.Rows, row)
			}
		}
		if name := "latency." + source; c.show(name+".p50_ms", milliseconds) != "" {
			latency.Rows = append(latency.Rows, c.row(source, milliseconds, name+".p50_ms", name+".p90_ms", name+".p99_ms"))
		}
	}
	return []Table{recall, latency}
}

// categories returns the categories that the report has, "all" first.
func (r Report) categories() []string {
	names := []string{all}
	for i := range 100 {
		if name := categoryName(i); r["questions."+name] != nil {
			names = append(names, name)
		}
	}
	return names
}
