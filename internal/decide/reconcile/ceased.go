package reconcile

import (
	"slices"
	"strings"

	"github.com/memsidecar/memsidecar/internal/lang"
	"github.com/memsidecar/memsidecar/internal/lang/lazyregexp"
)

// Activities, courses and bookings end in other words than they were stated in: "gave up Welsh", "dropped out of the race", 退出了, 冰岛语不学了.
// A clause of cessation names what has ended. It replaces a statement that says no more than that.

var (
	softEN = `(?:(?:has|have|had|is|but|and|so|now|just|finally|recently|also|actually|really|completely|lately|all but|since|already|` +
		`decided to|they|was|be) )*`
	// ceasesEN is what the user does not do any more; ceasedOfEN what does not take place.
	ceasesEN = lazyregexp.New(`(?i)^the user ` + softEN + `(?:stopped|quit|quitted|gave up on|given up on|gave up|given up|giving up|` +
		`dropped out of|dropped|cut out|lost interest in|pulled out of|withdrew from|withdrawn from|backed out of|resigned from|decided ` +
		`against|ditched|abandoned|no longer|called off|through with|done with|over with|gone off|tired of|sick of|bored with|(?:left|` +
		`quit) (?:their|his|her|the) (?:job|post|position|work) (?:at|with|in|for|as)) (.+)$`)
	notNowEN = lazyregexp.New(`(?i)^the user (?:(?:do|does|is|are|am|can|will|has|have|they|but|and|really|just|now|also) )+not ` +
		`(?:really |even |actually )?(.+?) (?:anymore|any longer|these days|nowadays)$`)
	ceasedEN = lazyregexp.New(`(?i)^(?:the user(?:'s)? |their |the |our |my )?(.+?) (?:(?:is|are|was|were|has|have|been|got) ` +
		`)*(?:fell through|fallen through|came to nothing)\b`)
	scrapsEN = lazyregexp.New(`(?i)^(?:scrap|never mind|forget(?: about)?|ditch|drop|skip|scratch) (?:the |their |the user's |his |` +
		`her |my )(.+)$`)
	boresEN = lazyregexp.New(`(?i)^(.+?) (?:now |just |really |simply )?(?:bores?|annoys?|irritates?|wearies|tires?) (?:the user|` +
		`them)\b|^(.+?) (?:now |just )?leaves? (?:the user|them) cold\b|^(.+?) (?:does|do) not (?:speak|appeal|matter) to (?:the user|` +
		`them)\b|^(.+?) (?:does|do) nothing for (?:the user|them)\b|^(.+?) (?:has|have|is|are) (?:become|grown|gotten|got)? ?(?:so |too |` +
		`very |rather )?(?:boring|tedious|dull|tiresome) (?:to|for) (?:the user|them)\b`)

	ceasesZH = lazyregexp.New(`^(?:.{0,12}?[年月日号末底]|.{0,4}(?:周|星期).)?用户(?:现在|已经|最近|后来|终于|也|都|又|还|就|真的|早就|决定|打算|其实)*(?:不再|再也不|再也没|放弃|` +
		`退出|戒掉|戒|退掉|停掉|停止|不打算|不准备|不想|不去|不|解除|不干|辞掉|离开|厌倦|玩腻|看腻|听腻|吃腻)(?:了)?(.+?)(?:了|的事|的计划)*$`)
	topicZH = lazyregexp.New(`^(.{2,16}?)用户(?:现在|已经|最近|也|都|又|早就|真的|再)*(?:不|(?:看|听|玩|吃|喝|读|学)(?:腻|不进去|不下去)|放弃|退).{0,4}了$`)
	needsZH = lazyregexp.New(`^(.{2,16}?)(?:已经)?(?:不用|不必|不需要|无需)(.{1,4})了$`)
	boredZH = lazyregexp.New(`^用户(?:现在|已经|最近|也|都|早就|真的)*对(.+?)(?:已经|现在|早就|都|再也)*(?:没(?:有)?兴趣|不感兴趣|没(?:有)?感觉|腻|厌倦|提不起兴趣|无感)(?:了)?$`)
	fellZH  = lazyregexp.New(`^(?:用户(?:的)?)?(.{2,16}?)(?:的事|的计划|这事)?(?:黄|泡汤|告吹|吹)了$|^(?:.{0,12}日(?:[(（].{1,4}[)）])?)?(?:不|用户不)(?:去|` +
		`用)?(.{2,10})了$`)

	// activities are verbs that hardly say more than what is done with.
	activities = func() map[string]bool {
		all := lang.Set(`learn studi train prepar practic practis attend join collect breed rais keep sign regist sing sai teach run visit listen
			like love enjoi prefer adore fond fan keen interest into fascin obsess crazi drawn explor realli absolut half
			job post posit compani am engag own hold trip book reserv appoint new again anoth bit goe save
			学 练 报 名 参 加 准 备 训 收 集 养 种 做 上 在 读 听 看 玩 喜 欢 爱 迷 着 感 兴 趣 对 很 特 别 非 常 得 需 续 去 订 办 班 工 作 公 司 正 和 跟 次 杯 两 一 二 三 天 攒 存 钱 更 偏`)
		for _, other := range []map[string]bool{habits, often, planWords} {
			for w := range other {
				all[w] = true
			}
		}
		return all
	}()
	negativeEN = lazyregexp.New(`(?i)\b(?:not|never|no longer|used to|hates?|dislikes?|allergic|quit|stopped|gave up|given up|afraid|` +
		`scared|bored|lost)\b`)
	negativeZH = lazyregexp.New(`不|没|戒|放弃|退出|讨厌|过敏|怕|曾经|以前|腻`)
)

// object is what a clause tells to have ended.
type object struct {
	text  string
	words []string // of content, without when
	named []string // of these, those that tell it from others
}

// core is what a statement is about.
type core struct {
	words  []string // of content, without when
	named  []string // of these, those that tell it from others
	denies bool     // it denies something, or tells what the user does not want or cannot have
}

func (r *reading) readCore() core {
	words := spoken(stripTimes(strings.Join(r.clauses, " ")))
	return core{words, without(words, activities), negativeEN.MatchString(r.text) || negativeZH.MatchString(r.text)}
}

func (r *reading) readGivenUp() []object {
	var list []object
	for _, c := range r.clauses {
		text := endedBy(c)
		if text == "" || passing.MatchString(c) {
			continue
		}
		words := spoken(stripTimes(trailing.ReplaceAllString(text, "")))
		if named := without(words, activities); len(named) > 0 {
			list = append(list, object{text, words, named})
		}
	}
	return list
}

// ceased says why the newer statement replaces an older one that it ends, or returns "".
func ceased(newer, older *reading) string {
	for _, o := range newer.givenUp() {
		if !within(o.named, older.words) || len(older.clauses) > 2 || whose(newer) != whose(older) {
			continue
		}
		old := older.core()
		// only in the morning
		narrower := otherTime(o.text, older.text) || slices.ContainsFunc(without(o.words, lang.Set(old.words...)), func(w string) bool { return often[w] })
		if len(old.named) > 0 && !old.denies && !narrower && within(o.named, old.words) && within(old.named, o.words) {
			return "it is over"
		}
	}
	return ""
}

// endedBy is what a clause tells to have ended, or "".
func endedBy(clause string) string {
	forms := []*lazyregexp.Regexp{ceasesEN, notNowEN, scrapsEN, boresEN, ceasedEN}
	if han.MatchString(clause) {
		forms = []*lazyregexp.Regexp{boredZH, topicZH, needsZH, ceasesZH, fellZH}
		if !strings.HasSuffix(clause, "了") && !strings.Contains(clause, "不再") && !strings.Contains(clause, "再也不") &&
			!strings.ContainsAny(clause, "戒退") && !strings.Contains(clause, "放弃") {
			return ""
		}
	}
	if m := firstMatch(clause, forms...); len(m) > 1 {
		return strings.Join(m[1:], "")
	}
	return ""
}

// otherTime reports whether a text names a time that the other does not: "in the evening".
func otherTime(text, than string) bool {
	at := timeEN.FindString(text) + timeZH.FindString(text)
	return at != "" && !strings.Contains(strings.ToLower(than), strings.ToLower(at[strings.LastIndexByte(at, ' ')+1:]))
}

// stripTimes leaves out when something is.
func stripTimes(text string) string {
	return timeZH.ReplaceAllString(timeEN.ReplaceAllString(text, " "), " ")
}
