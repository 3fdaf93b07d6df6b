package reconcile

import (
	"slices"
	"strings"
	"unicode"

	"github.com/memsidecar/memsidecar/internal/lang/compare"
	"github.com/memsidecar/memsidecar/internal/lang/lazyregexp"
)

var (
	// since tells that something is so from now on, and was not before.
	sinceEN = lazyregexp.New(`(?i)\b(?:now|these days|nowadays|from now on|currently|no longer|instead)\b`)
	sinceZH = lazyregexp.New(`现在|如今|目前|以后|从今|改成|改为`)
	eventZH = lazyregexp.New(`[了过].+了$|花|今天|昨天|买|跑了|吃了|去了`)
	frameZH = lazyregexp.New(`现在|如今|目前|以后|从今|改成|改为|(?:了$)`)
	numeral = lazyregexp.New(`^(?:[\d.,:]+\pL*|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|first|second|third|` +
		`fourth|fifth|sixth|seventh|eighth|ninth|tenth|[零一二三四五六七八九十百千万两半几]+)$`)
	runsZH = lazyregexp.New(`[\d.:]+|[零一二三四五六七八九十百千万两半]+|\p{Han}`)
)

// recounted reports why the newer statement takes the place of the older one: it is the same sentence with another number,
// and tells that this is so now. Without that both stay: money is spent every day.
func recounted(newer, older *reading) string {
	if len(newer.clauses) != 1 || len(older.clauses) != 1 || passing.MatchString(newer.text) {
		return ""
	}
	a, b := newer.clauses[0], older.clauses[0]
	if narrowEN.FindString(a) != narrowEN.FindString(b) || denialEN.MatchString(a) || strings.ContainsAny(a, "不没") {
		return ""
	}
	if han.MatchString(a) {
		if !sinceZH.MatchString(a) && (!strings.HasSuffix(a, "了") || eventZH.MatchString(a)) {
			return ""
		}
		a, b = compare.Canonical(frameZH.ReplaceAllString(a, "")), compare.Canonical(frameZH.ReplaceAllString(b, ""))
		if otherNumbers(runsZH.FindAllString(a, -1), runsZH.FindAllString(b, -1)) {
			return "the number is another now"
		}
		return ""
	}
	if !sinceEN.MatchString(a) {
		return ""
	}
	words := func(text string) []string {
		return strings.Fields(compare.Canonical(unitSpace.ReplaceAllString(sinceEN.ReplaceAllString(text, ""), "$1 $2")))
	}
	if otherNumbers(words(a), words(b)) {
		return "the number is another now"
	}
	return ""
}

// otherNumbers reports whether two sentences differ in numbers, and in nothing else.
func otherNumbers(a, b []string) bool {
	if len(a) != len(b) || len(a) < 3 {
		return false
	}
	differ := 0
	for i := range a {
		switch {
		case a[i] == b[i]:
		case numeral.MatchString(a[i]) && numeral.MatchString(b[i]):
			differ++
		default:
			return false
		}
	}
	return differ == 1
}

var (
	lostEN = lazyregexp.New(`(?i)^the user ` + askedToEN + `(?:cancel|sold|gave away|got rid of|traded in|lost|returned|broke|` +
		`cancelled|canceled) (?:his|her|their|the) (.+)$`)
	diedEN = lazyregexp.New(`(?i)^the user's (dog|cat|rabbit|hamster|parrot|bird|horse|puppy|kitten|fish|turtle)(?: [a-z]+)? (?:died|` +
		`passed away|ran away|was put down|had to be put down)\b.*$`)
	lostZH = lazyregexp.New(`^用户(?:把|将)(.+?)(?:卖|送人|退|弄丢|丢)掉?了$|^用户(?:卖掉|卖|送走|弄丢|丢)了(.+)$|^用户(?:的)?(.+?)(?:卖掉|卖|丢|弄丢)了$|` +
		`^用户(?:要求助手)?(?:帮用户)?取消了?(?:用户的?)?(.+)$`)
	diedZH = lazyregexp.New(`^用户(?:家)?(?:的)?(.*?(?:狗|猫|兔子|仓鼠|鹦鹉|鱼|乌龟).{0,4}?)(?:去世|死|过世|走丢|跑丢|离开)了$`)
	fromTo = lazyregexp.New(`(?i)^the user (?:switched|changed|moved|migrated|went) from (.+?) to (.+)$`)
	fromZH = lazyregexp.New(`^用户(?:从(.+?)(?:换成|换到|换用|转到|改用|转用)了?.+|不用(.+?)(?:而|,)?改用.+)$`)

	hasEN = lazyregexp.New(`(?i)^the user (?:has|owns|drives|rides|keeps|uses|bought|got|adopted|works with|subscribes to|has a ` +
		`subscription to) (?:an?|the|his|her|their)? ?(.+)$`)
	hasZH = lazyregexp.New(`^用户(?:有|养|开|骑|用|在用|买|戴|拥有|订|办)了?(?:一)?(?:只|条|辆|台|个|部|把|款|匹)?(.+)$`)
)

// parted reports why the newer statement takes the place of an older one: it tells that the user has not any more what the
// user had. Who has two of them may have one left.
func parted(newer, older *reading) string {
	if len(older.clauses) != 1 {
		return ""
	}
	had := firstMatch(older.clauses[0], hasEN, hasZH)
	if len(had) < 2 || slices.ContainsFunc(tokensOf(had[1]), numeral.MatchString) {
		return ""
	}
	for _, c := range newer.clauses {
		m := firstMatch(c, lostEN, diedEN, lostZH, diedZH, fromTo, fromZH)
		if m == nil {
			continue
		}
		end := len(m)
		if fromTo.MatchString(c) {
			end = 2
		}
		gone := spoken(strings.Join(m[1:end], ""))
		if len(gone) > 0 && (within(spoken(had[1]), gone) || within(gone, spoken(had[1]))) && !strings.HasSuffix(had[1], "s") {
			return "the user does not have it any more"
		}
	}
	return ""
}

func tokensOf(text string) []string {
	if han.MatchString(text) {
		return runsZH.FindAllString(text, -1)
	}
	return strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}
