package eval

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"
)

// GateOptions says what to measure.
type GateOptions struct {
	Files  []string
	Misses Misses
}

const gateNamespace = "gate"

// Gate compares memories with labels.
//
// In Memora's format each file is a user, whose sessions are considered in order. A user's turn counts as remembered if a memory that
// this consideration added, confirmed or changed cites it; for a confirmed memory, the turn at the time of its last mention. A session
// of type no_memory is clean if its consideration changed nothing. In the zh_gate format each line is a dialogue of one message. It is
// remembered if its consideration added, confirmed or changed a memory. facts.go describes how forgetting is measured.
func Gate(ctx context.Context, s *Sidecar, o GateOptions) (Report, error) {
	files, err := readGate(o.Files)
	if err != nil {
		return nil, err
	}
	g := &gate{Sidecar: s, Misses: o.Misses, report: Report{kindName: string(KindGate), "files": names(o.Files)}}
	if len(files.personas) > 0 {
		err = g.personas(ctx, files.personas)
	} else {
		err = g.judged(ctx, files.judged)
	}
	return g.report, err
}

func names(paths []string) string {
	list := make([]string, len(paths))
	for i, path := range paths {
		list[i] = filepath.Base(path)
	}
	return strings.Join(list, " ")
}

// gate is one run.
type gate struct {
	*Sidecar
	Misses
	report Report
	added  int // memories
}

// change is a change of a memory by a consideration, with the memory if it still exists.
type change struct {
	action memsidecarv1.MemoryAction
	text   string
	memory *memsidecarv1.Memory
}

// changes returns the changes that store something.
func (g *gate) changes(ctx context.Context, scope *memsidecarv1.Scope, c *memsidecarv1.Consideration) (list []change, err error) {
	for _, made := range c.GetChanges() {
		switch made.GetAction() {
		case memsidecarv1.MemoryAction_MEMORY_ACTION_UNSPECIFIED, memsidecarv1.MemoryAction_MEMORY_ACTION_LEFT_DELETED:
			continue
		case memsidecarv1.MemoryAction_MEMORY_ACTION_ADDED:
			g.added++
		default:
		}
		if made.GetMemoryId() == "" { // nothing was found that could be forgotten
			continue
		}
		resp, err := g.Memories.GetMemory(ctx, &memsidecarv1.GetMemoryRequest{Scope: scope, MemoryId: made.GetMemoryId()})
		if err != nil && status.Code(err) != codes.NotFound {
			return nil, err
		}
		list = append(list, change{made.GetAction(), made.GetText(), resp.GetMemory()})
	}
	return list, nil
}

// missedTurn is a turn with a wrong result.
type missedTurn struct {
	Wrong    string   `json:"wrong"` // "false positive" or "false negative"
	File     string   `json:"file"`
	Session  string   `json:"session"`
	Turn     int      `json:"turn"`
	Text     string   `json:"text"`
	Kind     string   `json:"kind,omitempty"`
	Hard     bool     `json:"hard,omitempty"`
	Memories []string `json:"memories,omitempty"`
	Reason   string   `json:"reason,omitempty"` // of the consideration
}

func (g *gate) miss(label, predicted bool, miss missedTurn) {
	switch {
	case label == predicted:
		return
	case label:
		miss.Wrong = "false negative"
	default:
		miss.Wrong = "false positive"
	}
	g.add(miss)
}

func (g *gate) personas(ctx context.Context, files []personaFile) error {
	total := 0
	for i := range files {
		total += len(files[i].Sessions)
	}
	step, done := g.Progress(total, "sessions considered")
	defer done()
	run := personaRun{gate: g}
	for i := range files {
		p := &files[i]
		held := newStoredTexts()
		for j := range p.Sessions {
			if err := run.session(ctx, p, &p.Sessions[j], held); err != nil {
				return fmt.Errorf("%s: %w", p.Name, err)
			}
			step()
		}
		if err := run.ask(ctx, p, held); err != nil {
			return fmt.Errorf("%s: %w", p.Name, err)
		}
	}
	g.report["sessions"], g.report["memories"] = total, g.added
	run.turns.report(g.report, "gate.")
	g.report["gate.no_memory_sessions"] = run.empty
	g.report.share("gate.clean_sessions", ratio(run.clean, run.empty))
	run.reportFacts()
	return nil
}

// personaRun counts over all personas.
type personaRun struct {
	*gate
	turns        confusion
	empty, clean int // sessions without anything worth remembering, and those of them that stored nothing

	facts  // current memories
	then   facts
	unsaid int
}

// facts counts facts that were kept and forgotten.
type facts struct{ kept, forgotten, forgottenRemembered share }

func (r *personaRun) session(ctx context.Context, p *personaFile, s *personaSession, held *storedTexts) error {
	scope := direct(gateNamespace, p.Name, "assistant", fmt.Sprintf("%s/%d", p.Name, s.ID))
	messages := make([]*memsidecarv1.Message, len(s.Conversation))
	for i, t := range s.Conversation {
		role := memsidecarv1.Role_ROLE_ASSISTANT
		if t.byUser() {
			role = memsidecarv1.Role_ROLE_USER
		}
		messages[i] = message(s.messageID(t), role, t.Message, s.turnTime(i))
	}
	outcome, err := r.consider(ctx, scope, messages)
	if err != nil {
		return err
	}
	changes, err := r.changes(ctx, scope, outcome)
	if err != nil {
		return err
	}
	if s.Type == noMemory {
		r.empty++
		if len(changes) == 0 {
			r.clean++
		}
	}
	for i, t := range s.Conversation {
		if !t.byUser() {
			continue
		}
		var texts []string
		for _, c := range changes {
			if c.cites(messages[i]) {
				texts = append(texts, c.text)
			}
		}
		r.turns.add(t.Share, len(texts) > 0)
		r.miss(t.Share, len(texts) > 0, missedTurn{
			File: filepath.Base(p.Path), Session: fmt.Sprint(s.ID), Turn: t.Turn, Text: t.Message, Memories: texts, Reason: outcome.GetReason(),
		})
	}
	for _, c := range changes {
		held.add(c.text, s.ID)
	}
	return nil
}

// cites reports whether the memory rests on the message. What was confirmed may cite only what it rested on at first.
func (c change) cites(m *memsidecarv1.Message) bool {
	if c.action == memsidecarv1.MemoryAction_MEMORY_ACTION_REINFORCED && c.memory.GetLastMentionTime().AsTime().Equal(m.GetSendTime().AsTime()) {
		return true
	}
	for _, id := range c.memory.GetProvenance().GetMessageIds() {
		if id == m.GetId() {
			return true
		}
	}
	return false
}

func (g *gate) judged(ctx context.Context, turns []judgedTurn) error {
	step, done := g.Progress(len(turns), "turns considered")
	defer done()
	var every, easy, hard confusion
	kinds := map[string]*confusion{}
	for _, t := range turns {
		scope := direct(gateNamespace, t.User, "assistant", t.User+"/"+t.Date)
		m := message(fmt.Sprintf("%s/%d", t.Date, t.Turn), memsidecarv1.Role_ROLE_USER, t.Text, t.time)
		outcome, err := g.consider(ctx, scope, []*memsidecarv1.Message{m})
		if err != nil {
			return err
		}
		changes, err := g.changes(ctx, scope, outcome)
		if err != nil {
			return err
		}
		label, predicted := *t.Label == 1, len(changes) > 0
		every.add(label, predicted)
		if t.Hard {
			hard.add(label, predicted)
		} else {
			easy.add(label, predicted)
		}
		if kinds[t.Kind] == nil {
			kinds[t.Kind] = &confusion{}
		}
		kinds[t.Kind].add(label, predicted)
		var texts []string
		for _, c := range changes {
			texts = append(texts, c.text)
		}
		g.miss(label, predicted, missedTurn{
			File: t.file, Session: t.User + " " + t.Date, Turn: t.Turn, Text: t.Text, Kind: t.Kind, Hard: t.Hard, Memories: texts, Reason: outcome.GetReason(),
		})
		step()
	}
	g.report["memories"] = g.added
	every.report(g.report, "gate.")
	easy.report(g.report, "gate.easy.")
	hard.report(g.report, "gate.hard.")
	for kind, c := range kinds {
		if c.tp+c.fn > 0 {
			g.report["gate.kind."+kind+".positive"] = c.tp + c.fn
			g.report.share("gate.kind."+kind+".recall", ratio(c.tp, c.tp+c.fn))
		}
	}
	return nil
}

// gate returns the table of results.
func (c cells) gate() []Table {
	turns := Table{Words: 1, Columns: []string{"turns", "number", "positive", "remembered", "precision", "recall", "F1", "balanced accuracy"}}
	for _, part := range []struct{ name, prefix string }{{"all", "gate."}, {"without hard ones", "gate.easy."}, {"hard ones", "gate.hard."}} {
		if n, ok := c.report.number(part.prefix + "turns"); !ok || n == 0 {
			continue
		}
		row := c.row(part.name, wholeNumber, part.prefix+"turns", part.prefix+"positive", part.prefix+"predicted")
		turns.Rows = append(turns.Rows, append(row, c.row("", thousandths, part.prefix+"precision", part.prefix+"recall", part.prefix+"f1",
			part.prefix+"balanced_accuracy")[1:]...))
	}
	shares := Table{Words: 1, Columns: []string{"share", "number", "value"}}
	for _, s := range []struct{ words, name, number string }{
		{"sessions with nothing to remember that left nothing", "gate.clean_sessions", "gate.no_memory_sessions"},
		{"facts to be remembered that are retrieved", "gate.kept", "gate.kept_facts"},
		{"facts taken back that are not retrieved", "gate.forgotten", "gate.forgotten_facts"},
		{"… of those that had been remembered", "gate.forgotten_remembered", "gate.forgotten_remembered_facts"},
		{"to be remembered, as of the last session", "gate.then.kept", "gate.then.kept_facts"},
		{"taken back, as of the last session", "gate.then.forgotten", "gate.then.forgotten_facts"},
		{"… of those that had been remembered", "gate.then.forgotten_remembered", "gate.then.forgotten_remembered_facts"},
	} {
		if value := c.show(s.name, thousandths); value != "" {
			shares.Rows = append(shares.Rows, []string{s.words, c.show(s.number, wholeNumber), value})
		}
	}
	kinds := Table{Words: 1, Columns: []string{"kind", "positive", "recall"}}
	for _, name := range sortedKeys(c.report) {
		if kind, ok := strings.CutPrefix(name, "gate.kind."); ok && strings.HasSuffix(kind, ".recall") {
			kind = strings.TrimSuffix(kind, ".recall")
			kinds.Rows = append(kinds.Rows, []string{kind, c.show("gate.kind."+kind+".positive", wholeNumber), c.show(name, thousandths)})
		}
	}
	return []Table{turns, shares, kinds}
}
