package evidence

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/memsidecar/memsidecar/internal/lang"
	"github.com/memsidecar/memsidecar/internal/lang/lazyregexp"
	"github.com/memsidecar/memsidecar/internal/lang/lexical"
)

var (
	capitalised = lazyregexp.New(`[\p{L}\p{M}][\p{L}\p{M}\d'’]*`)
	latin       = lazyregexp.New(`[A-Za-z][A-Za-z0-9+#]+`)
	namedZH     = lazyregexp.New(`(?:名叫|叫做|叫作|取名|名为|名字叫|名字是|姓名是|全名是|昵称是|昵称叫|小名|大名|[猫狗鸟鱼兔龟儿女友妹弟姐哥妈爸只名位个条]叫)([\p{Han}·・]+)`)
	dotted      = lazyregexp.New(`[\p{Han}]+(?:[·・•][\p{Han}]+)+`)
	quotedText  = lazyregexp.New(`《([^《》]{1,80})》|「([^「」]{1,200})」|『([^『』]{1,200})』|“([^“”]{1,400})”|"([^"]{1,400})"`)
	codeText    = lazyregexp.New(`[\w.+-]+@[\w-]+(?:\.[\w-]+)+|https?://[^\s<>"“”，。；]+|\b(?:[\w-]+\.)+(?:com|org|net|cn|io|dev|de|uk|` +
		`edu|gov)\b(?:/[^\s<>"“”，。；]*)?|#\d+|\b[a-z]+[-_]?\d[\w-]*\b|\b\d+[a-z]+\d[\w-]*\b`)
	pronounHan = lazyregexp.New(`^[他她它我你您其这那]`)
)

// common are capitalised words that need no evidence.
var common = lang.Set(`i i'm i've i'd i'll user users the a an mr mrs ms dr prof am pm ok tv pc id usd eur gbp rmb cny god internet mom mum
	mommy dad daddy grandma grandpa
	mother father sister brother aunt uncle sir madam monday tuesday wednesday thursday friday saturday sunday mon tue wed thu fri sat sun
	january february march april may june july august september october november december jan feb mar apr jun jul aug sep sept oct nov dec
	utc gmt asap faq ai diy cv ceo cto hr it phd covid bbq wifi email app ui api url gps usb dna lgbt`)

// alike are words that stand for each other although their letters differ.
var alike = groups(`spanish spain|french france|dutch netherlands holland|british britain uk england english|american america us usa ` +
	`states|chinese china mandarin prc|swiss switzerland` +
	`|danish denmark|polish poland|irish ireland|welsh wales|finnish finland|greek greece|thai thailand|filipino philippines|christmas ` +
	`xmas|television tv|christian christianity` +
	`|muslim islam|jewish judaism|catholic catholicism|buddhist buddhism|nyc york new|la angeles los|sf francisco san|beijing peking|vegan veganism` +
	`|javascript js|typescript ts|kubernetes k8s|postgresql postgres|golang go|photoshop ps|facebook fb|instagram ig insta|youtube yt|` +
	`whatsapp wa|robert bob|william bill will|elizabeth liz beth|michael mike|thomas tom` +
	`|samuel sam|samantha sam|alexander alex|katherine kate kathy|richard rick dick|edward ed ted|james jim|john jack|margaret meg peggy|` +
	`mcdonald's mcdonalds|starbucks starbuck's`)

func groups(list string) map[string][]string {
	out := map[string][]string{}
	for group := range strings.SplitSeq(list, "|") {
		members := strings.Fields(group)
		for _, w := range members {
			out[w] = slices.Concat(out[w], members)
		}
	}
	return out
}

// namesIn finds the names of a statement, of which quotations and codes are blanked out.
func namesIn(text string) []detail {
	var list []detail
	switch lexical.Language(text) {
	case "zh":
		list = append(list, namesInChinese(text)...)
		for _, w := range latin.FindAllString(text, -1) {
			if !common[strings.ToLower(w)] {
				list = append(list, detail{kind: name, text: w, folded: fold(w)})
			}
		}
	case "en":
		list = namesInEnglish(text)
	}
	return list
}

func ascii(w string) bool {
	return !strings.ContainsFunc(w, func(r rune) bool { return r >= utf8.RuneSelf })
}

func namesInEnglish(text string) []detail {
	var list []detail
	end, run := 0, 0 // run is where in the list the words begin that make one name
	for _, at := range capitalised.FindAllStringIndex(text, -1) {
		between := text[end:at[0]]
		first := end == 0 || strings.ContainsAny(between, ".!?:;\n\"“") && !strings.HasSuffix(strings.TrimRight(text[:end], "."), "Mr") &&
			!strings.HasSuffix(text[:end], "Dr")
		end = at[1]
		word := text[at[0]:at[1]]
		w := strings.TrimSuffix(strings.TrimSuffix(strings.ReplaceAll(word, "’", "'"), "'s"), "'")
		if between != " " {
			run = len(list)
		}
		r, _ := utf8.DecodeRuneInString(w)
		inner := strings.ContainsFunc(w[utf8.RuneLen(r):], unicode.IsUpper)
		if !unicode.IsUpper(r) && !inner || first && !inner || common[strings.ToLower(w)] || utf8.RuneCountInString(w) < 2 {
			run = len(list)
			continue
		}
		list = append(list, detail{kind: name, text: w, folded: fold(w)})
		initials := make([]byte, 0, len(list)-run)
		for _, d := range list[run:] {
			initials = append(initials, d.folded[0])
		}
		for i := run; i < len(list); i++ {
			list[i].initials = string(initials)
		}
	}
	return list
}

func namesInChinese(text string) []detail {
	var list []detail
	for _, w := range dotted.FindAllString(text, -1) {
		if i := strings.LastIndexAny(w, "叫是的在"); i >= 0 && i < strings.IndexAny(w, "·・•") {
			w = w[i+len("叫"):]
		}
		if before, _, ok := strings.Cut(w, "·"); ok && utf8.RuneCountInString(before) > 6 {
			continue // words before the name, and nobody knows where it begins
		}
		list = append(list, detail{kind: name, text: w, folded: fold(w)})
	}
	for _, m := range namedZH.FindAllStringSubmatch(text, -1) {
		run := []rune(m[1])
		if len(run) == 0 || pronounHan.MatchString(m[1]) || strings.ContainsAny(m[1], "·・") {
			continue
		}
		w := string(run[:min(2, len(run))]) // where a name ends cannot be told
		list = append(list, detail{kind: name, text: w, folded: fold(w)})
	}
	return list
}

// hasName reports whether a message has a name, or a form of it.
func (g *ground) hasName(d detail) bool {
	w := strings.Trim(d.folded, "'")
	b := bare(w)
	if b == "" || strings.Contains(g.bare, b) {
		return true
	}
	if !ascii(b) {
		return unicode.Is(unicode.Han, []rune(b)[0]) && g.latin && !g.han // in another script
	}
	if g.han && !d.inHan {
		return true // in another script
	}
	for _, said := range g.words {
		if sameName(b, said) || len(d.initials) > 1 && said == d.initials {
			return true
		}
	}
	return g.initials(b)
}

// sameName reports whether two words are forms of one: German and Germany, Ann and Ann's, a nickname.
func sameName(a, b string) bool {
	if slices.Contains(alike[a], b) {
		return true
	}
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n >= 4 && 5*n >= 3*max(len(a), len(b)) || n >= 3 && n == min(len(a), len(b)) && max(len(a), len(b)) <= n+2
}

// initials reports whether a word is made of the first letters of words that follow each other, or one of these is made of
// letters that it begins with.
func (g *ground) initials(w string) bool {
	if len(w) < 2 || len(w) > 5 {
		return false
	}
	for i := 0; i+len(w) <= len(g.words); i++ {
		match := true
		for j := range len(w) {
			if said := g.words[i+j]; said == "" || said[0] != w[j] {
				match = false
				break
			}
		}
		if match {
			return true
		}
	}
	return false
}
