package reconcile

import (
	"slices"
	"strings"

	"github.com/memsidecar/memsidecar/internal/lang"
	"github.com/memsidecar/memsidecar/internal/lang/lazyregexp"
)

// stance is what a clause affirms or denies.
type stance struct {
	verb   string   // "like", or "" when the verb is among the words
	words  []string // what it is about, in content words, sorted
	light  []string // words of the clause that hardly say anything beside those, such as "drink" beside "coffee"
	denies bool
	ends   bool // it was so before: "no longer", "quit"
}

var (
	likesEN = lazyregexp.New(`(?i)^(the user(?:'s [a-z ]{2,20})?) (?:(?:really|very much|also|still|now|just) )*(?:likes?|loves?|` +
		`enjoys?|adores?|is fond of|is a fan of|is into|is keen on) (.+)$`)
	dislikesEN = lazyregexp.New(`(?i)^(the user(?:'s [a-z ]{2,20})?) (?:(?:really|very much|also|still|now|just) )*(?:dislikes?|` +
		`hates?|detests?|can not stand|is not a fan of|is not fond of|is not into|is not keen on|is sick of|is tired of|(?:does|do|did) ` +
		`not (?:like|love|enjoy)|(?:no longer|never) (?:likes?|loves?|enjoys?)|stopped (?:liking|enjoying)|has gone off|went off) ` +
		`(.+?)(?: anymore| at all)*$`)
	likesZH    = lazyregexp.New(`^(用户(?:的?[\p{Han}]{1,4}?)?)(?:现在|还是|一直|也|又|还|开始|变得)*(?:很|非常|特别|超|超级|挺|蛮|最)?(?:喜欢上|喜欢|喜爱|热爱|爱上|爱|迷上)了?(.+)$`)
	dislikesZH = lazyregexp.New(`^(用户(?:的?[\p{Han}]{1,4}?)?)(?:现在|已经|一直|也|还|开始|变得|很|非常|特别|最|其实|根本)*(?:不再喜欢|不喜欢|不太喜欢|不怎么喜欢|不爱|不再爱|讨厌|` +
		`厌恶|反感|受不了|恨|腻了|吃腻了|不想再)上?了?(.+)$`)
	lightZH = lazyregexp.New(`^(?:去|做|学)?(吃|喝|看|听|玩|打|穿|用|读|养|学)?`)
	lightEN = lazyregexp.New(`(?i)^(?:to )?(eating|drinking|watching|listening to|playing|using|wearing|reading|going to|doing|` +
		`having|eat|drink|watch|listen to|play|use|wear|read|go to|do|have)? ?`)

	denialEN = lazyregexp.New(`(?i)\b(?:(?:does|do|did|is|are|was|has|have|can|will) not|not|never|no longer|quit|stopped|gave up|has ` +
		`given up|given up|anymore)\b`)
	endingEN = lazyregexp.New(`(?i)\b(?:no longer|quit|stopped|gave up|given up|anymore)\b`)
	denialZH = lazyregexp.New(`不再|再也不|不|戒掉了?|戒了|戒|放弃了?|停止了?`)
	endingZH = lazyregexp.New(`不再|再也不|戒|放弃|停止|不.*了$`)
	aspectZH = lazyregexp.New(`现在|其实|真的|目前|已经|一直|还是|开始|会|在|了|着|过|的|很|非常|特别|都|就`)
	aspectEN = lang.Set("now currently still alreadi also realli start begin veri much have be do use")
	trailing = lazyregexp.New(`(?i)(?:\s+(?:now|anymore|at all|again|these days|nowadays|currently|very much|a lot|so much))+$|[了的]+$`)
	// passing is what is true of a day and not of the next.
	passing = lazyregexp.New(`(?i)\b(?:today|yesterday|tonight|this (?:morning|evening|afternoon|week)|last (?:night|week))\b|今天|昨天|` +
		`今晚|昨晚|今早|早上|刚才|这次`)
	// often are words for how often something is done, and when.
	often = lang.Set("morn afternoon even night noon dai week month year weekend weekdai daili weekli everi alwai usual often sometim " +
		"regular breakfast lunch dinner work 每 天 早 晨 上 中 下 午 晚 夜 周 月 常 经 总 平 时 饭 后 前 都")
	// undone matches duties that are not done yet; they negate nothing.
	undone = lazyregexp.New(`(?i)\bnot (?:yet )?(?:done|finished|through)\b`)
	// habits are verbs that go without saying beside what they are done with.
	habits = lang.Set("smoke drink eat use take have plai watch wear read do go drive keep 喝 吃 抽 用 看 玩 打 开 养 吸")
)

// stanceOf reads what a clause affirms or denies.
func stanceOf(clause string) stance {
	if passing.MatchString(clause) && !strings.Contains(clause, "每") || undone.MatchString(clause) {
		return stance{}
	}
	if s, ok := liking(clause); ok {
		return s
	}
	if han.MatchString(clause) {
		clause = strings.ReplaceAll(clause, "没有", "不有")
		if strings.Contains(clause, "没") { // it tells what did not happen once
			return stance{}
		}
		s := stance{denies: denialZH.MatchString(clause), ends: endingZH.MatchString(clause)}
		if strings.Count(clause, "不") > 1 || strings.Contains(clause, "不得不") || strings.Contains(clause, "不错") {
			return stance{}
		}
		s.words = spoken(aspectZH.ReplaceAllString(denialZH.ReplaceAllString(clause, ""), ""))
		slices.Sort(s.words)
		return s
	}
	s := stance{denies: denialEN.MatchString(clause), ends: endingEN.MatchString(clause)}
	s.words = without(spoken(denialEN.ReplaceAllString(clause, " ")), aspectEN)
	slices.Sort(s.words)
	return s
}

// liking reads what is liked and disliked, in whatever words.
func liking(clause string) (stance, bool) {
	for _, test := range []struct {
		re     *lazyregexp.Regexp
		light  *lazyregexp.Regexp
		denies bool
	}{{dislikesEN, lightEN, true}, {likesEN, lightEN, false}, {dislikesZH, lightZH, true}, {likesZH, lightZH, false}} {
		m := test.re.FindStringSubmatch(clause)
		if m == nil {
			continue
		}
		if !test.denies && denialEN.MatchString(m[2]) || strings.ContainsAny(m[1], "不没") || strings.Contains(clause, "最") {
			return stance{}, true
		}
		object := trailing.ReplaceAllString(m[2], "")
		light := test.light.FindStringSubmatch(object)
		s := stance{verb: "like", denies: test.denies, ends: endingEN.MatchString(clause) || endingZH.MatchString(clause)}
		if light[1] != "" {
			s.light = []string{strings.ToLower(light[1])}
		}
		s.words = append(spoken(object[len(light[0]):]), "/", strings.ToLower(m[1]))
		slices.Sort(s.words)
		return s, len(s.words) > 2
	}
	return stance{}, false
}

// opposed reports why the newer statement takes the place of the older one because it says the opposite, or "".
func opposed(newer, older *reading) string {
	if len(older.stances) != 1 { // something else would be lost with it
		return ""
	}
	old := older.stances[0]
	for i, s := range newer.stances {
		if len(s.words) == 0 || s.denies == old.denies || s.verb != old.verb {
			continue
		}
		same := slices.Equal(s.words, old.words)
		if s.verb == "like" && len(s.light) > 0 && len(old.light) > 0 && !slices.Equal(s.light, old.light) {
			same = false // likes to watch it, hates to play it
		}
		// "Quit coffee" says that the user does not drink it.
		if !same && s.verb == "" && s.denies && s.ends && within(s.words, old.words) {
			rest := without(old.words, lang.Set(strings.Join(s.words, " ")))
			// Who drinks no coffee any more drinks none in the morning, either.
			same = len(without(rest, habits)) == 0 || len(s.words) > 1 && len(without(rest, often)) == 0
		}
		if same && len(newer.clauses) > i {
			return "it says the opposite"
		}
	}
	return ""
}
