package rules

import (
	"strings"

	"github.com/memsidecar/memsidecar/internal/lang"
	"github.com/memsidecar/memsidecar/internal/lang/lazyregexp"
)

// Matches a finished event without content: "I went out", 我出去逛了一圈. Another word about the place, the company or the activity makes it
// an experience.

var (
	passedEN = lang.Set("went walked strolled wandered rested relaxed sat watched played rode had came hung drove listened")
	// empty words beside such a verb: who, how, for how long, in what weather, and nouns that name nothing.
	passingWordsEN = lang.Set(`i we me myself by alone the a an some my own out outside around about off home back down up and then so for
		of in with to just only also really very quite too
		slowly quietly leisurely happily casually today yesterday tonight this that morning afternoon evening day now earlier while bit
		little whole long short slow quick
		weather sun sunny was were is it nice good great lovely fine beautiful warm cool wonderful pleasant happy fun time break rest walk
		stroll ride drive look
		movie movies film films show tv music game games friend friends somebody someone together had felt feel feeling`)
	// "I learned a lot and how to manage my emotions": about the conversation.
	learnedEN = lazyregexp.New(`\blearn(ed|t)( so| quite)? (a lot|much|many things|something)( today)?( and|,|about|on| and about)* how to\b`)
	passingZH = lazyregexp.New(`^(我们?|今天|昨天|刚才|刚刚|刚|早上|上午|中午|下午|晚上|天气|阳光|心情|很|真|非常|特别|挺|还|也|又|好|不错|晴朗|舒服|就|便|都|一个人|独自|自己|慢慢|悠闲|随便|到处|` +
		`四处|在?外面|外边|出去|出门|出来|出|去|走走|走|逛逛|逛|转转|转|溜达|玩|散心|兜风|散|步|看|听|吃|休息|放松|和|跟|与|同|几个|朋友们?|一起|了|过|着|地|的|一圈|一会儿?|一下|一趟|一阵|一天|半天|一场|一部|一个|` +
		`场|部|电影|电视|音乐|东西|回家|回来|啊|呀|呢|吧|，|,| )+[。.！!～~]*$`)
	passedZH = lazyregexp.New(`(走|逛|转|溜达|玩|散|步|看|听|吃|休息|放松|出去|出门|兜风|散心).*了|了.*(圈|走走|逛逛|转转|电影|音乐|东西)|过$`)
)

// passingEN reports whether an English clause is about something finished, without content.
func passingEN(p piece) bool {
	verb := false
	if strings.ContainsRune(p.norm, masked) {
		return false
	}
	for _, w := range p.words {
		if passedEN[w.norm] {
			verb = true
		} else if !passingWordsEN[w.norm] {
			return false
		}
	}
	return verb && p.hasWord("i", "we")
}
