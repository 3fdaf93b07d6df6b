package echo

import (
	"slices"
	"strings"

	"golang.org/x/text/unicode/norm"

	"github.com/memsidecar/memsidecar/internal/lang"
	"github.com/memsidecar/memsidecar/internal/lang/compare"
	"github.com/memsidecar/memsidecar/internal/lang/lazyregexp"
	"github.com/memsidecar/memsidecar/internal/lang/lexical"
)

// Told reports whether a sentence says nothing that a memory does not say, in the second person, the third or without a person: all its
// content words are in the memory, enough of them to have the same topic, and both agree in negations, plans and people.
func Told(sentence, remembered string) bool {
	if compare.Same(sentence, remembered) {
		return true
	}
	s, m := plain(sentence), plain(remembered)
	if !slices.Equal(marksOf(s), marksOf(m)) {
		return false
	}
	for _, count := range counted.FindAllString(s, -1) {
		if !strings.Contains(m, count) {
			return false
		}
	}
	said, all := contentOf(s)
	held, _ := contentOf(m)
	if len(said) == 0 || 2*len(said) < len(held) {
		return false
	}
	for w := range said {
		if !held[w] {
			return false
		}
	}
	pairs, shared := 0, 0 // the order of characters
	_, of := contentOf(m)
	for p := range all {
		pairs++
		if of[p] {
			shared++
		}
	}
	return 2*shared >= pairs
}

// Near reports whether a sentence is about the same as a memory although it says something else: most words of content are
// in it.
func Near(sentence, remembered string) bool {
	said, _ := contentOf(plain(sentence))
	held, _ := contentOf(plain(remembered))
	shared := 0
	for w := range said {
		if held[w] {
			shared++
		}
	}
	return shared > 0 && 5*shared >= 3*min(len(said), len(held))
}

// Shares reports whether two texts have a word of content in common.
func Shares(a, b string) bool {
	x, _ := contentOf(plain(a))
	y, _ := contentOf(plain(b))
	for w := range x {
		if y[w] {
			return true
		}
	}
	return false
}

// Within reports whether a text has no word of content that another lacks.
func Within(text, other string) bool {
	x, _ := contentOf(plain(text))
	y, _ := contentOf(plain(other))
	for w := range x {
		if !y[w] {
			return false
		}
	}
	return len(x) > 0
}

// contentOf are a text's words of content; of scripts without spaces the characters, and apart from them their pairs.
func contentOf(text string) (words, pairs map[string]bool) {
	words, pairs = map[string]bool{}, map[string]bool{}
	for _, t := range lexical.Tokens(text) {
		switch {
		case t.Function || hedges[t.Surface]:
		case t.Kind == lexical.CharPair:
			pairs[t.Term] = true
		case t.Kind == lexical.Compound:
		default:
			words[t.Term] = true
		}
	}
	return words, pairs
}

var (
	rhetorical = lazyregexp.New(`(不是)([^，。,.]{2,})(吗|嘛)[？?。！!\s]*$`)
	hedgesZH   = lazyregexp.New(`看来|看起来|看样子|看得出来?|(我)?(还)?记得|我知道|听说|据我所知|(没错|对|是|行|好)吧|对不对|是不是|好不好|对[吗嘛]|是[吗嘛]|真的|原来|果然|(之前|以前|上次)?(你|` +
		`您)?(说|提|讲)(到)?过|毕竟|既然|所以|那么|应该|当然|非常|特别|十分|挺|一直|确实|不过[，,]|你好|您好`)
	hedges = lang.Set(`remember recall know see seem seems look looks sound sounds right correct still course great noted mentioned told
		said say guess think really very much so well
		indeed truly clearly apparently also oh ah yes yeah ok okay sure isn aren don doesn didn person someone user`)
	// One spelling of what means the same.
	wordsZH = strings.NewReplacer("喜爱", "喜欢", "热爱", "喜欢", "超爱", "喜欢", "爱吃", "喜欢吃", "爱喝", "喜欢喝", "爱看", "喜欢看", "爱听", "喜欢听", "爱玩", "喜欢玩",
		"居住", "住", "母亲", "妈妈", "父亲", "爸爸", "老婆", "妻子", "太太", "妻子", "老公", "丈夫", "購買", "买", "购买", "买")
	wordsEN = lazyregexp.New(`\b(loves?|enjoys?|adores?|(is|are|am) (a )?(big |huge )?fan of|(is|are|am) fond of|(is|are|am) into|liked)\b`)
	livesEN = lazyregexp.New(`\b(reside|resides|residing|(is|are|am) living|(is|are|am) based)\b`)

	counted   = lazyregexp.New(`[0-9]+(\.[0-9]+)?|[零一二两三四五六七八九十百千万半]+[只个個条岁歲年月日号點点次块元位名本台辆]`)
	markWords = lazyregexp.New(`[不没沒無无未别戒非勿]|想|打算|计划|計劃|准备|希望|曾|以前|妈|爸|哥|姐|弟|妹|儿子|女儿|孩子|妻|丈夫|朋友|同事|老板|邻居|爷爷|奶奶|外公|外婆|叔|姨|舅|室友|老师|同学|男友|女友` +
		`|\b(not|no|never|none|nothing|nobody|without|hardly|stop(ped)?|quit|used|former|ex|want|wants|plans?|planning|intends?|hopes?|` +
		`might|may|would|wish(es)?` +
		`|sisters?|brothers?|mother|mom|mum|father|dad|parents?|wife|husband|sons?|daughters?|kids?|child|children|baby|friends?|` +
		`girlfriend|boyfriend|partner|colleagues?|coworkers?|boss|neighbou?rs?|uncle|aunt|cousins?|grandma|grandpa|grandmother|` +
		`grandfather|teacher|roommates?)\b|n't\b`)
)

// plain is a sentence in lower case without what only carries it, with one word for several of one meaning.
func plain(text string) string {
	text = strings.ReplaceAll(strings.ToLower(norm.NFKC.String(text)), "’", "'")
	text = strings.ReplaceAll(lexical.Simplified(text), "用户", "")
	text = rhetorical.ReplaceAllString(text, "$2")
	text = hedgesZH.ReplaceAllString(text, "")
	text = wordsZH.Replace(text)
	text = wordsEN.ReplaceAllString(text, "likes")
	return livesEN.ReplaceAllString(text, "lives")
}

// marksOf are a sentence's negations, intentions and the people it is about.
func marksOf(text string) []string {
	text = tagEN.ReplaceAllString(text, "")
	found := markWords.FindAllString(text, -1)
	for i, w := range found {
		if w == "n't" || w == "no" {
			w = "not"
		}
		if len(w) > 3 && w[0] < 0x80 {
			w = strings.TrimSuffix(w, "s")
		}
		found[i] = w
	}
	slices.Sort(found)
	return slices.Compact(found)
}

var tagEN = lazyregexp.New(`,? *(isn't it|aren't you|don't you|didn't you|isn't that so|no)\s*[?.!]*\s*$`)
