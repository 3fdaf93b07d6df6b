package reconcile

import (
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"github.com/memsidecar/memsidecar/internal/lang"
	"github.com/memsidecar/memsidecar/internal/lang/lazyregexp"
	"github.com/memsidecar/memsidecar/internal/lang/lexical"
)

// spellings are words that are written in several ways.
var spellings = strings.NewReplacer("noes longer", "no longer",
	"favorite", "favourite", "Favorite", "favourite", "any more", "anymore", "e-mail", "email", "E-mail", "email")

// plain is a text in one width and script, with its words as the patterns have them. Capitals stay: they tell names.
func plain(text string) string {
	text = spellings.Replace(lexical.ExpandAll(norm.NFKC.String(text)))
	text = strings.Join(strings.Fields(lexical.Simplified(text)), " ")
	return strings.TrimFunc(text, func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune(".!?。！？…~", r) })
}

var (
	// breaks are what clauses end at, once marked has written the commas as semicolons.
	breaks = lazyregexp.New(`(?i)[;。!?]+\s*|\.\s+|\s+[–—-]{1,2}\s+|\s+(?:and|but|then|because|although|while|since|so that)\s+`)
	// userEN and userZH begin a statement about the user.
	userEN = lazyregexp.New(`(?i)^(?:the |this )?user\b(?:'s)?`)
	userZH = lazyregexp.New(`^(?:该|这位|这个)?(?:用户|使用者)`)
	// leads are introductory words before the subject.
	leads = lazyregexp.New(`(?i)^(?:(?:as )?(?:it )?turns out(?: that)?|apparently|actually|in fact|unfortunately|luckily|finally|` +
		`sadly|by the way|the doctors? (?:says|said)(?: that)?|the user (?:asked|asks|wants) (?:the assistant )?to (?:remember|note)(?: ` +
		`that|:)?)[,:]?\s+|^(?:用户(?:要求|希望|让)?(?:助手)?(?:记住|记一下|记下)[:,]?|医生说|原来|其实|结果|后来|检查发现|没想到|幸好|可惜|顺便说一下)[,:]?`)
	han = lazyregexp.New(`\p{Han}`)
)

// answered is the form of a short answer that is stored with its question.
var answered = lazyregexp.New(`^(?:Asked ".+?", the user answered(?:, as corrected later)?: "|助手问“.+?”,用户回答(?:\(后来更正\))?“)(.+?)[."”]*$`)

// clauses divides a statement into parts, each with a subject: a part without one is about the user, or about the last other subject.
func clauses(text string) []string {
	var list []string
	if rest := leads.ReplaceAllString(text, ""); rest != "" {
		text = rest
	}
	if m := answered.FindStringSubmatch(text); m != nil { // what was answered is what is said
		text = m[1]
	}
	english, chinese := "the user ", "用户" // the subject of a part that has none
	for _, part := range breaks.Split(commaless(text), -1) {
		part = strings.TrimSpace(part)
		if part == "" {
			continue
		}
		switch {
		case userEN.MatchString(part):
			part = userEN.ReplaceAllStringFunc(part, func(s string) string {
				if strings.HasSuffix(s, "'s") {
					return "the user's"
				}
				return "the user"
			})
		case userZH.MatchString(part):
			part = userZH.ReplaceAllString(part, "用户")
		case len(list) == 0:
		case han.MatchString(part):
			part = chinese + part
		default:
			part = english + part
		}
		list = append(list, part)
		if who, ok := turnsTo(part, len(list) == 1); ok {
			english, chinese = who+" ", who
		}
	}
	return list
}

var (
	peopleEN = `mother|mom|mum|father|dad|parents|wife|husband|spouse|partner|girlfriend|boyfriend|fianc[eé]e?|ex|ex-wife|ex-husband|` +
		`sons?|daughters?|kids?|child|children|baby|brothers?|sisters?|siblings?|twins?|grand(?:ma|mother|pa|father|son|daughter|` +
		`parents)|` +
		`uncle|aunt|cousins?|nephew|niece|friends?|best friend|roommates?|flatmates?|housemates?|colleagues?|coworkers?|co-workers?|boss|` +
		`manager|mentor|neighbou?rs?|landlord|classmates?|teacher|coach|tutor|students?|dogs?|cats?|puppy|kitten|rabbit|hamster|` +
		`parrot|pets?|horse|turtle|bird`
	// ofUserEN begins a part about a relative, friend or pet of the user.
	ofUserEN = lazyregexp.New(`(?i)^the user's (?:[a-z-]+ ){0,2}?(?:` + peopleEN + `)\b`)
	// isOfUserEN states the relation of a named person, or of a pronoun, to the user.
	isOfUserEN = lazyregexp.New(`(?i)^[^;]{1,40} (?:is|are|was|were) (?:one of )?the user's (?:[a-z-]+ ){0,2}?(?:` + peopleEN + `)\b`)
	// bringsEN introduces a person that the following words may describe: "has a sister who is a nurse".
	bringsEN = lazyregexp.New(`(?i)^the user (?:has|knows|met|got|adopted|works with) (?:a|an|one|two|three) (?:[a-z-]+ ){0,2}?(?:` +
		peopleEN + `) (?:who|that|called|named|in|at|from)\b`)
	// ofUserZH, isOfUserZH and bringsZH are the same in Chinese: 用户有个妹妹.
	ofUserZH   = lazyregexp.New(`^用户(?:的|家的?|家里的?)?(?:大|小|新|前)?(?:` + strings.Join(append(people(), othersZH...), "|") + `)`)
	isOfUserZH = lazyregexp.New(`^[^;]{1,16}(?:是|当)用户(?:的|家的?)?`)
	bringsZH   = lazyregexp.New(`^用户.{0,12}?(?:有|养|认识|遇到|找到?|交|多|生|谈|领养|收养|捡)了?(?:一|两|三|几|好几|\d)?` +
		`(?:个|位|名|只|条|群|些)(?:新|[^;]{0,6}的)?(?:` + strings.Join(append(people(), othersZH...), "|") + `)`)
	aboutHerZH = lazyregexp.New(`^(?:他|她|它|这|那)`)
)

// othersZH are more relatives, friends and pets.
var othersZH = strings.Fields(`男朋友 女朋友 未婚夫 未婚妻 前任 前男友 前女友 前妻 前夫 闺女 宝宝 哥哥 弟弟 爷爷 奶奶 外公 外婆 姥姥 姥爷 舅舅 阿姨 姑姑 姨妈 外甥 孙子 孙女 岳父 岳母 公公 婆婆 家人 亲戚 哥们 兄弟 死党 发小 舍友
	同桌 导师 老师 教练 房东 搭档 徒弟 师傅 下属 网友 对象 兔子 仓鼠 鹦鹉 乌龟 金毛 柯基 泰迪 橘猫 布偶`)

// turnsTo is the person that a part of a statement is about; following parts without a subject are about that person and not the user.
// If the person is only introduced or named, the subject is "他" or "they", which fills no slot.
func turnsTo(part string, first bool) (who string, ok bool) {
	if han.MatchString(part) {
		switch {
		case bringsZH.MatchString(part), first && !strings.HasPrefix(part, "用户") && (aboutHerZH.MatchString(part) || isOfUserZH.MatchString(part)):
			return "他", true
		case ofUserZH.MatchString(part):
			return ofUserZH.FindString(part), true
		}
		return "", false
	}
	if who := ofUserEN.FindString(part); who != "" {
		return who, true
	}
	return "they", bringsEN.MatchString(part) || first && isOfUserEN.MatchString(part)
}

// commaless writes a semicolon for each comma that is not inside a number.
func commaless(text string) string {
	runes := []rune(text)
	for i, r := range runes {
		inside := i > 0 && i+1 < len(runes) && unicode.IsDigit(runes[i-1]) && unicode.IsDigit(runes[i+1])
		if r == ',' && !inside {
			runes[i] = ';'
		}
	}
	return string(runes)
}

// spoken are the words of a text that carry content, in order, each as its form for comparing.
func spoken(text string) []string {
	var list []string
	for _, t := range lexical.Tokens(text) {
		if t.Kind == lexical.CharPair || t.Kind == lexical.Compound || t.Function && t.Kind != lexical.Char {
			continue
		}
		if t.Kind == lexical.Char && t.Function && !meantChars[t.Term] {
			continue
		}
		term := t.Term
		if base, ok := irregular[t.Surface]; ok {
			term = base
		}
		list = append(list, term)
	}
	return list
}

// meantChars carry content in what users say of themselves, though they often do not.
var meantChars = lang.Set("有 会 能 最 每 更")

// irregular are past forms, by the stem of their verb.
var irregular = map[string]string{
	"went": "go", "gone": "go", "bought": "buy", "ate": "eat", "eaten": "eat", "drank": "drink", "drunk": "drink", "got": "get",
	"gotten": "get", "took": "take", "taken": "take", "made": "make", "saw": "see", "seen": "see", "met": "meet", "found": "find",
	"left": "leav", "sold": "sell", "began": "begin", "begun": "begin", "ran": "run", "wrote": "write", "written": "write",
	"read": "read", "built": "build", "learnt": "learn", "taught": "teach", "flew": "fli", "flown": "fli", "gave": "give",
	"given": "give", "had": "have", "has": "have", "did": "do", "done": "do", "drove": "drive", "driven": "drive", "spent": "spend",
	"paid": "pay", "sent": "send", "grew": "grow", "chose": "choos", "chosen": "choos", "became": "becom", "swam": "swim",
	"sang": "sing", "slept": "sleep", "won": "win", "lost": "lose", "rode": "ride", "kept": "keep", "caught": "catch",
}

// within reports whether every word of a is one of b.
func within(a, b []string) bool {
	has := lang.Set(b...)
	for _, w := range a {
		if !has[w] {
			return false
		}
	}
	return true
}

// without leaves the words of a set out.
func without(words []string, out map[string]bool) []string {
	var list []string
	for _, w := range words {
		if !out[w] {
			list = append(list, w)
		}
	}
	return list
}
