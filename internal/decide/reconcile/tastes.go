package reconcile

import (
	"slices"
	"strings"

	"github.com/memsidecar/memsidecar/internal/lang"
	"github.com/memsidecar/memsidecar/internal/lang/lazyregexp"
)

// taste is a preference or an aversion, present or past: "used to love", "is not into … anymore", "以前喜欢".
type taste struct {
	likes bool
	past  bool // it was so, and is not any more
	any   bool // it tells only that there was a change: "changed their mind about"
	core  []string
	name  []string     // the words of a name in the possessive that begins the object: "Grace Kelly's acting"
	about map[int]bool // fields that words of the object name, such as music
	still bool
	again bool // the object is a pronoun, or left out
}

// Predicates of taste, without auxiliaries and adverbs. Longer ones come first.
var (
	fondEN = strings.Split(`a fan of|a huge fan of|a big fan of|a great fan of|fond of|keen on|keen to|drawn more to|drawn to|obsessed `+
		`with|passionate about|crazy about|mad about|all about|interested in|in love with|excited about|attracted to|hooked on|addicted `+
		`to|partial to|care for|caring for|cared for|into|like|likes|liked|liking|love|loves|loved|loving|enjoy|enjoys|enjoyed|enjoying|`+
		`adore|adores|adored|appreciate|appreciates|appreciated|appreciating|prefer|prefers|preferred|wanted to|wants to|want to|dreams `+
		`of|dreamed of|look forward to|looks forward to`, "|")
	averseEN = strings.Split(`dislike|dislikes|disliked|disliking|hate|hates|hated|hating|detest|detests|detested|loathe|loathes|loathed|`+
		`sick of|bored of|tired of|bored with|over|stand|bear|out of|off|lost interest in|losing interest in|enough of|averse to|put off `+
		`by`, "|")
	changeEN = strings.Split(`changed their mind about|changed his mind about|changed her mind about|changing their mind about`, "|")

	// skipped stand between a subject and its predicate of taste.
	skipped = lang.Set(`but and so yet though they he she who actually really just also always now lately honestly definitely absolutely
		completely so much more very quite pretty truly simply recently finally
		even too all that such like especially particularly is are was were be been being has have had do does did come grown grew gone went
		become became gotten got getting get started
		began begun start learned to remembered remember how realized realised noticed found finding find finds discovered decided feel
		feels felt think thinks thought their himself herself themselves a little bit lot
		the user way becoming growing completely then today will would lost can could currently anymore`)
	denying = lang.Set(`not never stopped quit hardly barely`)
	// pronouns refer to what was spoken of before.
	pronouns = lang.Set(`it them him her that those this one these`)

	// loose words of an object hardly narrow it.
	loose = lang.Set(`idea thing kind sort type stuff lot way bit concept thought delv deal focus explor center cover discuss concern featur
		come late recent now anymor much too heavili general
		especi realli time whole general such mani day year round theme 的 了 过 着 那 种 类 些`)
	// fields are words that name a field of taste. Two tastes of different fields are two.
	fields = fieldsOf(
		`music song listen album band sing concert tune hear 音 乐 歌 听 曲`,
		`book read author novel literatur writer write work writings stori 书 读 小 说 作 家 文 学`,
		`film movi watch cinema actor actress director act perform work screen 电 影 片 演 员 剧 看`,
		`travel visit vacat trip destin holidai tourism go tour place see 旅 游 行 去 玩 景 点`,
		`climat weather climate 气 候 天`,
		`food eat dish cuisin meal cook 吃 菜 食 物`,
		`drink 喝 饮 料`,
		`plai game sport practic 打 踢 玩 游 戏 运 动`,
		`wear cloth 穿 衣 服`,
	)
	transitive = lang.Set("visit watch see hear wear")
	decadeEN   = lazyregexp.New(`\b([2-9]0)['’]?s\b`)
	tailOf     = lazyregexp.New(`(?i)\s+(?:when it comes to|as far as)\s+`)
	named      = lazyregexp.New(`^(?:the )?(\p{Lu}[\pL.-]*(?: \p{Lu}[\pL.-]*)*)'s\b`)
	byEN       = lazyregexp.New(`^(?:the |all )?[\pL]+ (?:of|by) (\p{Lu}[\pL.-]*(?: \p{Lu}[\pL.-]*)*)$`)
	howEN      = lazyregexp.New(`^(?:how|the way)(?: that)? (?:(\p{Lu}[\pL.-]*(?: \p{Lu}[\pL.-]*)*)|(\p{Ll}{4,})) \p{Ll}{3,}(?:s|ed)\b`)
	// fragment is a part of a sentence without a verb, such as the second of two things that are liked.
	// findsEN tells a taste by what something is found to be.
	findsEN = lazyregexp.New(`(?i)^(.+?) (?:to be )?((?:(?:so|very|really|quite|pretty|more|most|less|rather|too|incredibly|` +
		`absolutely|truly|just|not|all|that|as|increasingly) )*)(?:(fascinating|interesting|engaging|appealing|compelling|captivating|` +
		`relaxing|enjoyable|delightful|wonderful|amazing|beautiful|inspiring|exciting|fun|great|charming|delicious)|(boring|dull|tedious|` +
		`tiresome|annoying|exhausting|overrated|unappealing|disappointing|uninteresting|awful|terrible|unpleasant|repetitive))\b`)
	lessEN = lazyregexp.New(`(?i)\b(?:less|not)\b`)
	// againEN is what one is keen to do with what was spoken of.
	againEN = lazyregexp.New(`(?i)^(?:try|visit|go|see|explore|experience|do|taste)(?: it| them| there| that| this| one)*(?: again| more| now)*$`)
	// mindEN begins a statement about a change and continues with the former preference.
	mindEN = lazyregexp.New(`(?i)^the user (?:(?:but|and|so|they|he|she|have|has|completely|totally|really|actually|since|now) ` +
		`)*changed (?:their|his|her) mind$`)
	fragment = lazyregexp.New(`^the user (?:\p{Lu}[\pL'-]*|\p{Ll}[\pL'-]*(?:[^sdg\s]|ss))(?: [\pL'-]+){0,5}$`)
	auxEN    = lazyregexp.New(`(?i)\b(?:i|is|are|was|were|be|has|have|had|do|does|did|can|will|would|could|should|must|may|might|to|` +
		`not|never|still|they|he|she|it|went|got)\b`)
	stillEN = lazyregexp.New(`(?i)\bstill\b`)

	tasteZH = lazyregexp.New(`^用户(的?(?:` + strings.Join(people(), "|") + `)?)(以前|曾经|曾|过去|从前|原来|原本|之前|本来)?(?:现在|如今|最近|已经|后来|其实|也|又|都|` +
		`还是|就|真的|觉得|一直|一度|还|可是|但是|但|不过|却|倒|突然|慢慢|渐渐|越来越|变得|开始)*(不再|不太|不怎么|没那么|没有那么|不是很|不|没)?(?:很|非常|特别|超级|超|挺|蛮|那么|太)*(对(.+?)(?:感兴趣|有兴趣|` +
		`着迷|兴趣)|喜欢|喜爱|热爱|爱上|爱|迷上|迷恋|欣赏|讨厌|厌恶|反感|腻)(?:上)?(.*)$`)
	stillZH = lazyregexp.New(`还是|仍|依然|依旧|照样`)
	nowZH   = lazyregexp.New(`现在|如今|后来|最近|但|可是|不过|却|(?:了$)`)
)

func fieldsOf(groups ...string) map[string][]int {
	m := map[string][]int{}
	for i, g := range groups {
		for w := range strings.FieldsSeq(g) {
			m[w] = append(m[w], i)
		}
	}
	return m
}

// readTastes finds those that a statement tells, by its clauses; nil where a clause tells none.
func (r *reading) readTastes() []*taste {
	liked := make([]*taste, len(r.clauses))
	var before *taste
	for i, c := range r.clauses {
		for k := i + 1; k < len(r.clauses) && isFragment(r.clauses[k]); k++ {
			c += " and" + strings.TrimPrefix(r.clauses[k], "the user")
		}
		t := tasteEN
		if han.MatchString(c) {
			t = tasteOfZH
		}
		if liked[i] = t(c, r.text); liked[i] == nil {
			continue
		}
		if liked[i].again {
			if before == nil {
				liked[i] = nil
				continue
			}
			liked[i].core, liked[i].about, liked[i].name = before.core, before.about, before.name
		}
		before = liked[i]
	}
	return liked
}

const (
	fond = iota
	averse
	changed
)

// predicate is the longest predicate of taste that a text begins with.
func predicate(text string) (phrase string, kind int) {
	for k, list := range [][]string{fond: fondEN, averse: averseEN, changed: changeEN} {
		for _, p := range list {
			if strings.HasPrefix(text, p+" ") && len(p) > len(phrase) {
				phrase, kind = p, k
			}
		}
	}
	return phrase, kind
}

// tasteEN reads an English clause word by word, past auxiliaries and adverbs, up to a predicate of taste.
func tasteEN(clause, statement string) *taste {
	rest, ok := strings.CutPrefix(clause, "the user")
	if !ok || passing.MatchString(clause) {
		return nil
	}
	t := &taste{likes: true, still: stillEN.MatchString(statement)}
	if owner := otherEN.FindString(clause); owner != "" {
		return nil // the tastes of others are left to the stances
	}
	words := strings.Fields(rest)
	for i := 0; i < len(words); i++ {
		low := strings.ToLower(words[i])
		next := ""
		if i+1 < len(words) {
			next = strings.ToLower(words[i+1])
		}
		ahead := strings.ToLower(strings.Join(words[i:min(i+5, len(words))], " ")) + " "
		switch {
		case low == "used" && next == "to":
			t.past = true
			i++
			continue
		case low == "no" && next == "longer":
			t.likes = !t.likes
			i++
			continue
		case denying[low]:
			t.likes = !t.likes
			continue
		}
		if object, good, ok := findsTo(low, words[i+1:]); ok {
			t.likes = t.likes == good
			return t.of(object)
		}
		phrase, kind := predicate(ahead)
		switch {
		case phrase == "":
			if !skipped[low] && !strings.HasSuffix(low, "ly") {
				return nil
			}
			continue
		case low == "stand" || low == "bear": // only "can not stand"
			if t.likes {
				return nil
			}
		case kind == averse:
			t.likes = !t.likes
		case kind == changed:
			t.any = true
		}
		return t.of(strings.Join(words[i+len(strings.Fields(phrase)):], " "))
	}
	return nil
}

// findsTo reads "finds golf boring": what is found, and whether it is found to be good.
func findsTo(verb string, rest []string) (object string, good, ok bool) {
	if verb != "find" && verb != "finds" && verb != "found" && verb != "finding" {
		return "", false, false
	}
	m := findsEN.FindStringSubmatch(strings.Join(rest, " "))
	if len(m) < 5 {
		return "", false, false
	}
	return m[1], (m[4] == "") != lessEN.MatchString(m[2]), true
}

// of sets what the taste is for; nil when nothing is named.
func (t *taste) of(object string) *taste {
	object = tailOf.ReplaceAllString(decadeEN.ReplaceAllString(object, "19${1}s"), " ")
	first, _, _ := strings.Cut(strings.ToLower(object), " ")
	if m := howEN.FindStringSubmatch(object); m != nil { // "how Woolf writes of time" is told of Woolf
		object = m[1] + m[2]
	}
	if m := firstMatch(object, named, byEN); m != nil {
		t.name = spoken(m[1])
		slices.Sort(t.name)
	}
	t.about = map[int]bool{}
	if againEN.MatchString(object) {
		t.again = true
		return t
	}
	var light []string
	for _, w := range spoken(trailing.ReplaceAllString(object, "")) {
		groups, field := fields[w]
		for _, g := range groups {
			t.about[g] = true
		}
		switch {
		case loose[w]:
		case field:
			light = append(light, w)
		default:
			t.core = append(t.core, w)
		}
	}
	if t.again = pronouns[first]; t.again {
		return t
	}
	if len(t.core) == 0 && len(light) == 1 && transitive[light[0]] { // "keen to visit": what was spoken of
		t.again, t.about = true, map[int]bool{}
		return t
	}
	if len(t.core) == 0 { // "likes to travel": the field is what is liked
		t.core, t.about = light, nil
	}
	slices.Sort(t.core)
	t.core = slices.Compact(t.core)
	if len(t.core) == 0 {
		return nil
	}
	return t
}

// tasteOfZH reads a Chinese clause.
func tasteOfZH(clause, statement string) *taste {
	m := tasteZH.FindStringSubmatch(clause)
	if len(m) == 0 || m[1] != "" && m[1] != "的" || strings.Contains(clause, "最") || passing.MatchString(clause) {
		return nil
	}
	t := &taste{likes: m[3] == "" != slices.Contains([]string{"讨厌", "厌恶", "反感", "腻"}, m[4]), past: m[2] != "", still: stillZH.MatchString(statement)}
	if t.past && !nowZH.MatchString(statement) {
		return nil // "以前喜欢" alone tells nothing of today
	}
	object := m[5] + m[6]
	if strings.Trim(object, "了的它他她吧呢过 ") == "" {
		t.again, t.about = true, map[int]bool{}
		return t
	}
	return t.of(object)
}

// sameAs reports whether two tastes are for the same.
func (t *taste) sameAs(o *taste) bool {
	named := len(t.name) > 0 && slices.Equal(t.name, o.core) || len(o.name) > 0 && slices.Equal(o.name, t.core)
	if !named && !slices.Equal(t.core, o.core) {
		return false
	}
	if len(t.about) == 0 || len(o.about) == 0 {
		return true
	}
	for field := range t.about {
		if o.about[field] {
			return true
		}
	}
	return false
}

// explains begins a clause that continues about the preference before it, and belongs to it.
var explains = lazyregexp.New(`(?i)^the user (?:but |and |so )?(?:he|she|it|its|his|her|their|that|this|which|who|there)\b`)

func isFragment(clause string) bool {
	return fragment.MatchString(clause) && !auxEN.MatchString(clause)
}

// idle reports whether a clause says nothing, as "but lately".
func idle(clause string) bool {
	if mindEN.MatchString(clause) {
		return true
	}
	for word := range strings.FieldsSeq(strings.ToLower(strings.TrimPrefix(clause, "the user"))) {
		if !skipped[word] {
			return false
		}
	}
	return true
}

// outgrown says why the newer statement, about a change of taste, replaces the older one, or returns "". Everything else in the older
// one must be kept, apart from other tastes of the past.
func outgrown(newer, older *reading) string {
	var old *taste
	told := false
	for i, t := range older.tastes() {
		told = told || t != nil
		switch {
		case t == nil && idle(older.clauses[i]):
		case t == nil && told && isFragment(older.clauses[i]):
		case t == nil && !explains.MatchString(older.clauses[i]), t != nil && !t.past && old != nil && !t.sameAs(old):
			return ""
		case t != nil && !t.past:
			old = t
		}
	}
	if old == nil {
		return ""
	}
	for _, t := range newer.tastes() {
		switch {
		case t == nil || t.still || !t.sameAs(old):
		case t.any, t.past && t.likes == old.likes:
			return "the taste has changed"
		case !t.past && t.likes != old.likes:
			return "it says the opposite"
		}
	}
	return ""
}
