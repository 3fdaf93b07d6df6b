package reconcile

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/memsidecar/memsidecar/internal/decide"
	"github.com/memsidecar/memsidecar/internal/memory"
)

// Rules reconcile without a model.
type Rules struct{ onlyForget bool }

var _ decide.Reconciler = Rules{}

// New returns Rules.
func New() Rules { return Rules{} }

// OnlyForget returns Rules that follow requests to forget, and take everything else for new.
func OnlyForget() Rules { return Rules{onlyForget: true} }

// Name implements decide.Reconciler.
func (Rules) Name() string { return "rules" }

// Reconcile implements decide.Reconciler.
func (r Rules) Reconcile(_ context.Context, input decide.ReconcileInput) ([]decide.Resolution, error) {
	return r.resolve(input), nil
}

// resolve compares each statement with the memories at its time: the candidates that hold, and the earlier statements of the same
// dialogue.
func (r Rules) resolve(input decide.ReconcileInput) []decide.Resolution {
	gone := map[string]bool{} // what earlier statements took the place of
	var earlier []decide.Neighbor
	list := make([]decide.Resolution, len(input.Claims))
	for i, claim := range input.Claims {
		s := claim.Statement
		near := slices.DeleteFunc(append(slices.Clone(claim.Near), earlier...), func(n decide.Neighbor) bool { return gone[n.Memory.ID] })
		list[i].Action = decide.TreatAdd
		switch {
		case s.Forget:
			list[i] = withdraw(s, near)
		case s.Quarantine == "" && !r.onlyForget:
			list[i] = Compare(s, near)
		}
		switch list[i].Action {
		case decide.TreatSupersede, decide.TreatWithdraw:
			for _, id := range list[i].Targets {
				gone[id] = true
			}
		case decide.TreatAdd, decide.TreatSame, decide.TreatOutdated:
		}
		if stored := list[i].Action; s.Quarantine == "" && (stored == decide.TreatAdd || stored == decide.TreatSupersede) {
			if list[i].Text != "" {
				claim.Statement.Text = list[i].Text
			}
			earlier = append(earlier, decide.Neighbor{Memory: Pending(claim)})
		}
	}
	return list
}

// Pending is the memory that a claim will become, as far as later statements need it.
func Pending(c decide.Claim) memory.Memory {
	s := c.Statement
	return memory.Memory{ID: c.MemoryID, Text: s.Text, Language: s.Language, Kind: s.Kind, ObservedAt: s.ObservedAt, LastSaidAt: s.ObservedAt}
}

// Compare decides what a statement does to the candidates among the memories.
func Compare(s memory.Statement, near []decide.Neighbor) decide.Resolution {
	mine := read(s.Text)
	others := make([]*reading, len(near))
	for i := range near {
		others[i] = read(near[i].Memory.Text)
	}
	if r, ok := struckOff(s, mine, near, others); ok {
		return r
	}
	same := -1
	for i := range near {
		if same < 0 && repeats(mine, others[i], near[i].Cosine) {
			same = i
		}
	}
	var replaced []string
	var because, outdated decide.Resolution
	var since time.Time // when what makes it outdated was said
	take := func(i int, why string) {
		m := &near[i].Memory
		if before(s.ObservedAt, m) {
			if latest(m).After(since) {
				outdated, since = Outdated(m, why), latest(m)
			}
			return
		}
		replaced = append(replaced, m.ID)
		if because.Reason == "" {
			because.Reason = Reason(why, m)
		}
	}
	moved, changed := rearrangedBy(s, mine, near, others), revalued(s, mine, near, others)
	for i := range near {
		if i == same {
			continue
		}
		newer, older := mine, others[i]
		if before(s.ObservedAt, &near[i].Memory) {
			newer, older = older, newer
		}
		why := contradiction(newer, older)
		switch {
		case moved[i] != "":
			why = moved[i]
		case changed[i]:
			why = "the value is another now"
		}
		if why != "" && !mine.similar().Same(others[i].similar()) {
			take(i, why)
		}
	}
	switch {
	case outdated.Action != "":
		return outdated
	case same >= 0 && len(replaced) > 0: // said again after all
		return decide.Resolution{Action: decide.TreatSupersede, Targets: append(replaced, near[same].Memory.ID), Reason: because.Reason}
	case same >= 0:
		return decide.Resolution{
			Action: decide.TreatSame, Targets: []string{near[same].Memory.ID},
			Reason: fmt.Sprintf("it says the same as %q", near[same].Memory.Text),
		}
	case len(replaced) > 0:
		return decide.Resolution{Action: decide.TreatSupersede, Targets: replaced, Reason: because.Reason}
	}
	return decide.Resolution{Action: decide.TreatAdd}
}

// Reason says why a statement takes the place of a memory, or the other way round.
func Reason(why string, m *memory.Memory) string { return fmt.Sprintf("%s; known is %q", why, m.Text) }

// Outdated is the resolution of a statement when a memory was said later.
func Outdated(m *memory.Memory, why string) decide.Resolution {
	return decide.Resolution{Action: decide.TreatOutdated, Targets: []string{m.ID}, Reason: Reason("something else was said later: "+why, m)}
}

// before reports whether something was said before a memory was said last.
func before(at time.Time, m *memory.Memory) bool { return at.Before(latest(m)) }

func latest(m *memory.Memory) time.Time {
	if m.LastSaidAt.After(m.HoldsSince()) {
		return m.LastSaidAt
	}
	return m.HoldsSince()
}

// repeats reports whether a statement says what a memory says: in the same words, nearly, or as the same value of one slot.
func repeats(mine, other *reading, cosine float64) bool {
	if mine.similar().Near(other.similar(), cosine) {
		return true
	}
	a, ok := mine.alone()
	b, also := other.alone()
	return ok && also && a.slot == b.slot && a.value == b.value
}

// contradiction reports why the newer statement takes the place of the older one, or "".
func contradiction(newer, older *reading) string {
	for _, find := range []func(newer, older *reading) string{conflict, opposed, outgrown, over, fulfilled, recounted, parted, demoted, ceased} {
		if why := find(newer, older); why != "" {
			return why
		}
	}
	return ""
}

// rearrangedBy lists, by the index of the memory, the appointments that are moved or cancelled by the statement, or by a later statement
// that it repeats.
func rearrangedBy(s memory.Statement, mine *reading, near []decide.Neighbor, others []*reading) map[int]string {
	found := map[int]string{}
	if x, ok := rearrangement(mine); ok {
		older := make([]*reading, len(near))
		for i := range near {
			older[i] = others[i]
			if before(s.ObservedAt, &near[i].Memory) {
				older[i] = &reading{}
			}
		}
		if i := x.rearranges(older); i >= 0 {
			found[i] = x.what
		}
	}
	for i := range near {
		if !before(s.ObservedAt, &near[i].Memory) {
			continue
		}
		if x, ok := rearrangement(others[i]); ok && x.rearranges([]*reading{mine}) == 0 {
			found[i] = x.what
		}
	}
	return found
}

// queries are words by which memories that fill a domain of slots are found, in both languages.
var queries = map[string][]string{
	"home":                {"lives in", "moved to", "住在", "搬到", "定居"},
	"work":                {"works at job", "works as", "上班 工作", "职业 入职"},
	"name":                {"name called", "名字 叫"},
	"age":                 {"years old", "turned", "岁"},
	"relationship":        {"married single girlfriend boyfriend engaged divorced", "结婚 单身 朋友 恋爱 离婚 订婚"},
	"weight":              {"weighs weight kg", "体重 公斤 斤"},
	"height":              {"tall height", "身高"},
	"form of address":     {"call called", "称呼 叫"},
	"language of answers": {"answers replies in language", "回答 回复"},
	"school":              {"studies at school university", "上学 就读 大学"},
	"phone":               {"phone number", "手机 电话"},
	"birthday":            {"birthday born", "生日 出生"},
	"address":             {"address", "地址 住址"},
	"email":               {"email address", "邮箱"},
}

var endingQueries = []string{
	"looking for a job", "looking for an apartment", "pregnant", "cold flu sick", "learning to drive", "engaged",
	"找工作", "找房子", "怀孕", "感冒 发烧", "学车 驾照", "订婚",
}

// Probes implements decide.Reconciler.
func (r Rules) Probes(s memory.Statement) []decide.Probe {
	mine := read(s.Text)
	var probes []decide.Probe
	if s.Forget {
		for _, domain := range topics(s.Text) {
			for _, q := range queries[domain] {
				probes = append(probes, decide.Probe{Query: q, Keep: func(m *memory.Memory) bool { return fills(m.Text, domain) }})
			}
		}
		return probes
	}
	if r.onlyForget {
		return nil
	}
	asked := map[string]bool{}
	for _, slot := range mine.slots() {
		about, _, _ := strings.Cut(domain(slot), " of ")
		for _, q := range queries[about] {
			if !asked[q] {
				asked[q] = true
				probes = append(probes, decide.Probe{Query: q, Keep: func(m *memory.Memory) bool {
					return slices.ContainsFunc(read(m.Text).slots(), func(other string) bool { return domain(other) == domain(slot) })
				}})
			}
		}
	}
	for _, e := range mine.closing() {
		for _, q := range e.queries {
			probes = append(probes, decide.Probe{Query: q, Keep: func(m *memory.Memory) bool { return e.open.MatchString(m.Text) }})
		}
	}
	return probes
}
