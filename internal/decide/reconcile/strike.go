package reconcile

import (
	"slices"
	"strings"

	"github.com/memsidecar/memsidecar/internal/decide"
	"github.com/memsidecar/memsidecar/internal/lang"
	"github.com/memsidecar/memsidecar/internal/lang/lazyregexp"
	"github.com/memsidecar/memsidecar/internal/memory"
)

// removal is an entry that is struck off a list: "The user asked the assistant to remove oat milk from the shopping list."
type removal struct {
	entries [][]string // their words; more than one when "eggs and milk" may be two
	list    []string   // words of the list
	plain   bool       // the list has no name of its own: "the list"
}

const askedToEN = `(?:asked (?:the assistant )?to |wants (?:the assistant )?to |would like (?:the assistant )?to |needs (?:the assistant ` +
	`)?to |has |just |also |actually |please )*`

var (
	strikesEN = lazyregexp.New(`(?i)^the user ` + askedToEN + `(?:remove|removed|delete|deleted|take|took|taken|cross|crossed|strike|` +
		`struck|drop|dropped|scratch|scratched|cut)(?: out| off)? (.+?) (?:off of|off|out of|from) (?:of )?(.+)$`)
	// mayStrikeEN says to the assistant that an entry is not needed any more: "I can take that off my list".
	mayStrikeEN = lazyregexp.New(`(?i)^the user (?:can|could|should|may)(?: now| also| actually| probably)* (?:remove|delete|take|` +
		`cross|strike|drop|scratch)(?: out| off)? (.+?) (?:off of|off|out of|from) (.*\blist)$`)
	gonefrEN = lazyregexp.New(`(?i)^(.+?) (?:is|are|was|were|has been|have been) (?:no longer|not) (?:on|in|part of) (.+? list|the ` +
		`[a-z ]+)(?: anymore)?$`)
	needlesEN = lazyregexp.New(`(?i)^the user (?:(?:really|actually|now) )*(?:(?:does|do) not (?:need|want) (.+?) anymore|no longer ` +
		`(?:needs|wants) (?:to (?:buy|get) )?(.+?))$`)
	strikesZH = []*lazyregexp.Regexp{
		lazyregexp.New(`^用户(?:要求|让|希望|想让|请)?(?:助手)?(?:帮用户|帮忙|也|再|还)*(?:把|将)(.+?)从(.+?)(?:里面|里|中|上|上面)?(?:给|都)?(?:删掉|删除|删去|删|去掉|划掉|移除|` +
			`移出|移走|取消|拿掉|剔除)了?$`),
		lazyregexp.New(`^用户(?:要求|让|希望|想让|请)?(?:助手)?(?:帮用户|帮忙|也|再|还)*从(.+?)(?:里面|里|中|上|上面)?(?:给|都|把)*(?:删掉|删除|删去|删|去掉|划掉|移除|取消|拿掉|剔除)了?(.+)$`),
	}
	needlesZH = lazyregexp.New(`^用户(?:现在|已经)?(?:不需要|不要|不用买|不想要|不买)(.+?)了$`)

	// kept are memories that hold entries: what the bot was asked to put down, what was dictated to it, what is to be got.
	keptEN = lazyregexp.New(`(?i)\basked the assistant to (?:add|put|include|log|set|update|change|replace)|\bthe user answered\b|` +
		`\blists?\b|\b(?:needs?|wants?|has|have|plans?) to (?:buy|get|pick up|include)\b|\b(?:include|includes|including)\b|\b(?:is|are|` +
		`will be|were|was)\b|\b(?:agreed|approved|decided|selected|committed|chose)\b`)
	keptZH = lazyregexp.New(`要求助手|用户回答|清单|列表|名单|要买|需要买|包括|包含|有|是`)

	listWords  = lang.Set("list lists item entri section 清 单 列 表 名")
	parenthese = lazyregexp.New(`\s*[（(][^()（）]*[)）]`)
	quotes     = lazyregexp.New(`^["'“”‘’「『]+|["'“”‘’」』.。,;]+$`)
	boundEN    = lazyregexp.New(`(?i)\s*(?:,|;)?\s*\b(?:and|or|as well as|plus)\b\s*|\s*[,;]\s*`)
	articles   = lazyregexp.New(`(?i)(?:\b(?:the|a|an|to|their|his|her|its|some|our)\s+)+$`)
	relative   = lazyregexp.New(`(?i)^\s*(?:,\s*(?:which|who|that)\b[^,;"”]*|[（(][^()（）]*[)）]|\s+(?:which|who)\b[^,;"”]*?)(\s*[,;"”.]|` +
		`\s+and\b|$)`)
	answeredEN = lazyregexp.New(`, the user answered: "`)
	answeredZH = lazyregexp.New(`，用户回答“`)
)

// akin are words that name the same list, as its entries are spoken of.
var akin = []map[string]bool{
	lang.Set("recipi receiv send sent email mail 收 件 发"), lang.Set("attende attend particip join invit present guest 参 加 出 席"),
	lang.Set("object goal aim target 目 标"),
	lang.Set("deliver deliveri 交 付"), lang.Set("agenda topic 议 程 题"), lang.Set("shop groceri buy 购 物 买"),
	lang.Set("todo task need do 待 办 要"), lang.Set("point key cover 要 点"),
	lang.Set("decis decid agre approv select commit choos chose 决 定"), //nolint:misspell // stems
}

// removalOf reads that an entry is struck off.
func removalOf(r *reading) (removal, bool) {
	text := strings.TrimSpace(leads.ReplaceAllString(r.text, ""))
	text = userEN.ReplaceAllStringFunc(text, strings.ToLower)
	if m := strikesEN.FindStringSubmatch(text); m != nil {
		return newRemoval(m[1], m[2])
	}
	if m := mayStrikeEN.FindStringSubmatch(text); m != nil {
		return newRemoval(m[1], m[2])
	}
	if m := strikesZH[0].FindStringSubmatch(text); m != nil {
		return newRemoval(m[1], m[2])
	}
	if m := strikesZH[1].FindStringSubmatch(text); m != nil {
		return newRemoval(m[2], m[1])
	}
	if m := gonefrEN.FindStringSubmatch(text); m != nil {
		return newRemoval(m[1], m[2])
	}
	if m := needlesEN.FindStringSubmatch(text); m != nil {
		return newRemoval(m[1]+m[2], "shopping list")
	}
	if m := needlesZH.FindStringSubmatch(text); m != nil {
		return newRemoval(m[1], "购物清单")
	}
	return removal{}, false
}

func newRemoval(entry, list string) (removal, bool) {
	x := removal{}
	entry = quotes.ReplaceAllString(strings.TrimSpace(entry), "")
	for _, form := range []string{entry, parenthese.ReplaceAllString(entry, "")} {
		if w := entryWords(form); len(w) > 0 && !slices.ContainsFunc(x.entries, func(e []string) bool { return slices.Equal(e, w) }) {
			x.entries = append(x.entries, w)
		}
	}
	words := spoken(strings.ReplaceAll(strings.ToLower(list), "to-do", "todo"))
	x.list = without(words, listWords)
	x.plain = len(x.list) == 0
	return x, len(x.entries) > 0 && len(words) > 0
}

// todo reports whether the list is of what is to be done.
func (x removal) todo() bool {
	return slices.ContainsFunc(x.list, func(w string) bool { return w == "todo" || w == "task" || w == "待" || w == "办" })
}

// located is a word of an entry with its position in the text.
type located struct {
	form       string
	start, end int
}

var entryWord = lazyregexp.New(`\p{Han}|[\p{L}\p{N}][\p{L}\p{N}'’]*`)

// small words may differ between the ways in which an entry is named.
var small = lang.Set("a an the of to in on for and or with by at from their his her its my our your s some 的")

func placesOf(text string) []located {
	var list []located
	for _, at := range entryWord.FindAllStringIndex(text, -1) {
		form := strings.TrimSuffix(strings.ToLower(strings.ReplaceAll(text[at[0]:at[1]], "’", "'")), "'s")
		if !small[form] {
			list = append(list, located{form, at[0], at[1]})
		}
	}
	return list
}

func entryWords(text string) []string {
	var list []string
	for _, p := range placesOf(text) {
		list = append(list, p.form)
	}
	return list
}

// find is where an entry stands in a text.
func find(entry []string, text string) (start, end int, ok bool) {
	words := placesOf(text)
	for i := 0; i+len(entry) <= len(words); i++ {
		k := 0
		for k < len(entry) && words[i+k].form == entry[k] {
			k++
		}
		if k == len(entry) {
			return words[i].start, words[i+k-1].end, true
		}
	}
	return 0, 0, false
}

// of reports whether a memory is about the list that is meant.
func (x removal) of(r *reading) bool {
	if !keptEN.MatchString(r.text) && !keptZH.MatchString(r.text) {
		return false
	}
	if _, also := removalOf(r); also {
		return false
	}
	has := lang.Set(spoken(strings.ReplaceAll(strings.ToLower(r.text), "to-do", "todo"))...)
	if x.plain {
		return slices.ContainsFunc([]string{"list", "清", "列", "名"}, func(w string) bool { return has[w] })
	}
	for _, w := range x.list {
		if has[w] {
			return true
		}
		for _, group := range akin {
			if group[w] {
				for other := range group {
					if has[other] {
						return true
					}
				}
			}
		}
	}
	return false
}

// without removes the entry from a memory's text. The rest is "" if the memory says nothing else; ok is false if it does not hold the
// entry, or if the rest would be unclear.
func (x removal) without(text string) (rest string, ok bool) {
	for _, entry := range x.entries {
		start, end, found := find(entry, text)
		if !found {
			continue
		}
		if han.MatchString(text[start:end]) || han.MatchString(text) && !strings.ContainsAny(text, " ") {
			return cutZH(text, start, end)
		}
		return cutEN(text, start, end)
	}
	return "", false
}

func cutEN(text string, start, end int) (string, bool) {
	if cut := text[start:end]; strings.Count(cut, "(") > strings.Count(cut, ")") {
		if at := strings.IndexByte(text[end:], ')'); at >= 0 {
			end += at + 1
		}
	}
	before, after := articles.ReplaceAllString(text[:start], ""), text[end:]
	if m := relative.FindStringSubmatchIndex(after); m != nil {
		after = after[m[2]:]
	}
	left, right := boundEN.FindAllStringIndex(before, -1), boundEN.FindStringIndex(after)
	tied := len(left) > 0 && left[len(left)-1][1] == len(before)
	more := len(right) > 0 && right[0] == 0
	trimmed := strings.TrimLeft(after, " .)")
	switch {
	case more && tied: // one of three or more
		if strings.Contains(strings.ToLower(after[:right[1]]), "and") {
			before = before[:left[len(left)-1][0]]
			return before + strings.TrimPrefix(after, ","), true
		}
		return before + after[right[1]:], true
	case more: // the first
		return before + after[right[1]:], true
	case tied && (trimmed == "" || strings.ContainsAny(trimmed[:1], `"”'`) || startsPhrase(trimmed)):
		before = before[:left[len(left)-1][0]]
		// "A, B, and C" without C is "A, B".
		return before + after, true
	case trimmed == "" || strings.ContainsAny(trimmed[:1], `"”'`) || startsPhrase(trimmed):
		return "", true
	}
	return "", false // "milk" of "milk chocolate"
}

// startsPhrase reports whether the text after an entry is not a part of it: "to the list", "from the shop".
func startsPhrase(after string) bool {
	first, _, _ := strings.Cut(strings.ToLower(after), " ")
	return lang.Set("to from on in into off for at by soon with")[first]
}

func cutZH(text string, start, end int) (string, bool) {
	before, after := text[:start], text[end:]
	ties := []string{"、", "，", ",", "和", "与", "跟", "以及", "还有"}
	cut := func(s string, trim func(string, string) string) (string, bool) {
		for _, t := range ties {
			if rest := trim(s, t); rest != s {
				return rest, true
			}
		}
		return s, false
	}
	if rest, ok := cut(after, strings.TrimPrefix); ok {
		return before + rest, true
	}
	closed := after == "" || strings.ContainsAny(after[:min(3, len(after))], "”。；") ||
		slices.ContainsFunc([]string{"到", "加", "放", "写", "列", "记", "进"}, func(w string) bool { return strings.HasPrefix(after, w) })
	if rest, ok := cut(before, strings.TrimSuffix); ok && closed {
		return rest + after, true
	}
	return "", closed
}

// struckOff resolves a statement that strikes an entry off a known list: it replaces the memory with that entry. If that memory has
// other entries, these remain.
func struckOff(s memory.Statement, mine *reading, near []decide.Neighbor, others []*reading) (decide.Resolution, bool) {
	x, ok := removalOf(mine)
	if !ok {
		return decide.Resolution{}, false
	}
	const why = "an entry is struck off"
	r := decide.Resolution{Action: decide.TreatSupersede}
	newest := -1 // of those that hold other entries
	for i := range near {
		m := &near[i].Memory
		if before(s.ObservedAt, m) || !x.of(others[i]) {
			continue
		}
		rest, holds := x.without(m.Text)
		switch {
		case !holds:
			continue
		case rest == "" && len(others[i].clauses) > 2:
			continue // it says something else as well
		case rest == "":
			r.Targets = append(r.Targets, m.ID)
		case newest < 0 || latest(m).After(latest(&near[newest].Memory)):
			newest, r.Text = i, corrected(rest)
		}
		if r.Reason == "" {
			r.Reason = Reason(why, m)
		}
	}
	if newest >= 0 {
		r.Targets = append(r.Targets, near[newest].Memory.ID)
	}
	return r, len(r.Targets) > 0
}

// corrected says of an answer that is quoted that it is not as it was given.
func corrected(text string) string {
	text = answeredEN.ReplaceAllString(text, `, the user answered, as corrected later: "`)
	return answeredZH.ReplaceAllString(text, "，用户回答（后来更正）“")
}
