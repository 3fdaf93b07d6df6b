package rules

import (
	"slices"
	"strings"

	"github.com/memsidecar/memsidecar/internal/lang/lazyregexp"
	"github.com/memsidecar/memsidecar/internal/memory"
)

// Requests to forget concern what may have been remembered in earlier dialogues. They differ from requests not to remember
// ("别记这个", "don't save this"), which only keep their own words out.

// withdrawal is a request to forget that says itself what.
type withdrawal struct {
	before  []piece // the clauses in front of it
	request piece   // all of it
	content piece   // what is to be forgotten; empty when that is what was said before
	all     bool    // everything about the speaker is to be forgotten
	after   []piece // the clauses behind it
}

// A clause is matched from its beginning, after polite words. The group is what is to be forgotten.
var (
	withdrawalsEN = []*lazyregexp.Regexp{
		lazyregexp.New(`^(?:forget|unlearn|stop remembering|stop thinking|erase from your memory|delete from your memory) (?:that|the ` +
			`fact that)?:? ?((?:i|i'm|i've|i’m|i’ve|im|my|we|our|me) [^,.;!?]+)`),
		lazyregexp.New(`^(?:forget|delete|erase|remove|drop|wipe)(?: about)? (?:everything|anything|all|what|whatever|all of what|the ` +
			`things?|the stuff|those things|the memory|the memories|your memory|your memories|any memory|any memories|every memory)(?: ` +
			`that)?(?: (?:i|i've|i have|i’ve)(?: just| ever| once| already| previously| have)? (?:told you|said|mentioned|shared|wrote|` +
			`written)(?: to you| earlier| before)?| you(?:'ve|’ve| have| may have| still)?(?: all)? (?:know|knew|remember|remembered|` +
			`stored|saved|learned|learnt|have|got|noted)(?: down)?)? (?:about|of|on|regarding|concerning) (?:the |an? )?([^,.;!?]+)`),
		lazyregexp.New(`^forget(?: about)? ((?:(?:where|how|what|who|when) )?(?:my|our|(?:where|how|who|when) (?:i|we)) [^,.;!?]+)`),
		lazyregexp.New(`^(?:delete|erase|remove|wipe|drop) ((?:my|our|the fact that (?:i|my|we)|that (?:i|my|we)) [^,.;!?]+?) (?:from|` +
			`in|out of) (?:your |the )?(?:memory|memories|notes|records?)`),
		lazyregexp.New(`^(?:do not|don't|don’t|dont|never|no longer) (?:remember|store|keep|save)(?: that| the fact that| anything ` +
			`about| what i (?:said|told you) about)? ((?:my|our|i|i'm|i’m|we) [^,.;!?]+?) (?:any ?more|any longer|from now on)`),
		lazyregexp.New(`^stop (?:remembering|storing|keeping|saving)(?: that| the fact that| anything about| what i (?:said|told you) ` +
			`about)? ((?:my|our|i|i'm|i’m|we) [^,.;!?]+)`),
	}
	withdrawalsZH = []*lazyregexp.Regexp{
		// 忘掉我说过我喜欢猫, 忘掉我说的关于前任的事, 删掉我之前告诉你的地址
		lazyregexp.New(`^(?:忘掉|忘记|忘了|删掉|删除|清除|抹掉)(?:一下)?我?(?:之前|以前|刚才|上次|前面|曾经)?(?:跟你|对你|和你|给你)?(?:说过?的?|告诉过?你的?|告诉你过?|提到?过?的?|` +
			`讲过?的?)(?:关于|有关)?([^，,。；;！!？?]+)`),
		// 忘了关于搬家的事吧, 删掉你关于我工作的记忆
		lazyregexp.New(`^(?:忘掉|忘记|忘了|删掉|删除|清除|抹掉)(?:一下)?你?(?:知道的|记得的|记住的|所有)*(?:关于|有关|对)([^，,。；;！!？?]+)`),
		// 忘掉我的地址, 忘记我住在北京这件事; what has happened ("忘记我是谁了") is none
		lazyregexp.New(`^(?:忘掉|忘记)((?:我|咱)[^，,。；;！!？?]*?[^，,。；;！!？?了])(?:吧|好吗|可以吗)?[。！!？?～~，, ]*$`),
		lazyregexp.New(`^忘了((?:我|咱)[^，,。；;！!？?]+?)吧`),
		// 把我的地址从记忆里删掉, 把关于我前任的记忆删掉, 把我说的工资忘掉
		lazyregexp.New(`^把(?:你)?(?:知道的|记得的|记住的)?(?:关于|有关)?([^，,。；;！!？?]+?)(?:从你?的?记忆(?:里|中|里面)|的(?:全部|所有)?(?:记忆|记录))(?:都|全|全都|给|` +
			`全部)*(?:删|清|抹|忘|去)(?:掉|除|了|空|记|去)?`),
		lazyregexp.New(`^把(?:关于|有关)([^，,。；;！!？?]+?)的(?:事|事情|东西|内容|信息|一切)?(?:都|全|全都|全部|给)*(?:删|清|抹|忘)(?:掉|除|了|空)`),
		lazyregexp.New(`^把(?:关于|有关)?(我[^，,。；;！!？?]+?)(?:都|全|全都|给)*(?:忘掉|忘了|忘记)(?:吧)?[。！!？?～~，, ]*$`),
		// 别再记我的地址了, 不要再记住我喜欢猫, 不用记得我的生日了
		lazyregexp.New(`^(?:以后)?(?:别|不要|不用|不必|无需)再(?:记住|记着|记得|记录|记|保存|存着?|留着)([^，,。；;！!？?]+)`),
		lazyregexp.New(`^(?:以后)?(?:别|不要|不用|不必|无需)(?:记住|记着|记得|记录|记|保存|存着?|留着)([^，,。；;！!？?]+?)了(?:吧)?[。！!～~，, ]*$`),
	}
	// The request concerns the previous words, or everything.
	vagueZH = lazyregexp.New(`^(的|过的)?(我?(之前|刚才|刚|以前|上次|前面)*(跟你|对你|和你)?(说|讲|提)过?的(话|这些|那些|事|内容)?|话|那些话|这些话|这些|那些|这个|那个|这句话?|那句话?|这件事|` +
		`那件事|这事|那事|内容|东西|一切|所有|它|我|我们|我的(事|事情|一切|话|所有)?|错|仇|恨)?(都|全|吧|了|事|事情|的)*$`)
	vagueEN = lazyregexp.New(`^(me|us|it|this|that|them|everything|all of it|i (just )?(said|told you|asked|wrote|mentioned)( (that|` +
		`this|anything|something|it|earlier|before))*|i (exist|asked)|my (last|previous|question|message|request)( .*)?|(the|a|an|other|` +
		`last|rest|things?|stuff|matter|same|whole)( .*)?)$`)
	// The request concerns all that is known of the speaker.
	everythingZH = lazyregexp.New(`^我们?(自己)?(的(一切|所有|全部|(所有|全部)?(事|事情|东西|信息|资料|记忆|记录|数据|内容)))?(都|全|吧|了)*$`)
	everythingEN = lazyregexp.New(`^(me|us|myself|ourselves)$`)
	// A clause is about the user's life, "my keys" in "I forgot my keys" are not asked about at all.
	tailZH = lazyregexp.New(`(这件事|这回事|这事|的事情?|的记忆|的信息|的内容)?(吧|了|啦|好吗|可以吗|行吗|呗|啊|呀|哦)*[。！!？?～~，, ]*$`)
	tailEN = lazyregexp.New(`(?i)( please| ok| okay| thanks| thank you| any ?more| any longer| from your memory| now)+$`)

	askedEN = lazyregexp.New(`^(please |hey |ok |okay |also |and |so |just |kindly |you should |you can |you may |you must |you have ` +
		`to |you need to |can you |could you |would you |will you |can you please |could you please |i want you to |i need you to |i ` +
		`would like you to |i'd like you to |i’d like you to |now |actually |oh |btw |by the way |then |let's |let us |,|, )+`)
	askedZH = lazyregexp.New(`^(请你?|请您|麻烦你?|麻烦您|拜托你?|帮我|帮忙|你|您|能不能|能|能否|可以|可不可以|我想让你|我希望你|希望你|我要你|我想请你|就|那|那就|也|都|顺便|对了|另外|还有|现在|还是|算了|，|,| )+`)
	// takenBack marks a request about previous words that also concerns existing memories of them.
	takenBack = lazyregexp.New(`忘|删|当我没|没说过|刚|上一?[句条]|前面|之前|\b(forget|unremember|delete|erase|scratch|strike|disregard|ignore|remove)\b`)
	// wholly is in such a request when all that was said is meant.
	wholly = lazyregexp.New(`都|全|所有|一切|这些|那些|几[句条]|刚才说的|刚说的|说的话|\b(everything|all|these|those|what)\b`)
	// alsoEN ties another request to a request to forget.
	alsoEN = lazyregexp.New(` (and|but|then) (then )?(tell|give|help|let|please|can|could|what|how|remember|just|call|write|show|use|` +
		`start|make)\b`)
)

// forgetful are the words without which nothing is a request to forget.
var forgetful = strings.Fields(`忘 删 清 抹 别 不 forget learn stop erase delete remove drop wipe not don dont never longer`)

// withdrawal finds a request to forget in a sentence.
func (r *Rules) withdrawal(s sentence, clauses []piece, lang string) (withdrawal, bool) {
	forms, asked := withdrawalsEN, askedEN
	switch lang {
	case chinese:
		forms, asked = withdrawalsZH, askedZH
	case english:
	default:
		return withdrawal{}, false
	}
	for k, c := range clauses {
		body := r.grammarOf(lang).stripLead(c)
		politely := false
		if end := matchEnd(asked, body.norm); end > 0 && end < len(body.norm) {
			politely, body = true, body.from(end)
		}
		if s.asks() && !politely || !body.has(forgetful...) {
			continue // "忘掉一个人要多久？"
		}
		at := firstMatch(forms, body.norm)
		if at == nil || notForgetting.MatchString(body.norm) {
			continue
		}
		content := body.src.piece(body.start+at[2], body.start+at[3])
		if cut := matchStart(alsoEN, content.norm); lang == english && cut > 0 {
			content = content.src.piece(content.start, content.start+cut)
		}
		if everythingZH.MatchString(content.norm) || everythingEN.MatchString(tailEN.ReplaceAllString(content.norm, "")) {
			return withdrawal{before: clauses[:k], request: body, content: content, all: true, after: clauses[k+1:]}, true
		}
		vague := vagueZH.MatchString(content.norm) || vagueEN.MatchString(tailEN.ReplaceAllString(content.norm, ""))
		if vague || content.runes() > r.maxRunes/2 {
			content = piece{}
		}
		return withdrawal{before: clauses[:k], request: body, content: content, after: clauses[k+1:]}, true
	}
	return withdrawal{}, false
}

// firstMatch is where the first of the patterns that matches does so, with its groups.
func firstMatch(forms []*lazyregexp.Regexp, s string) []int {
	for _, form := range forms {
		if at := form.FindStringSubmatchIndex(s); at != nil {
			return at
		}
	}
	return nil
}

// withdraw hears a request to forget, with the clauses around it.
func (r *Rules) withdraw(h *heard, s sentence, w withdrawal, lang string, classes map[class]int) {
	r.hearClauses(h, sentence{piece: s.piece}, w.before, lang, classes)
	text := forgottenAll(lang)
	if !w.all {
		text = forgottenText(w.content, lang)
	}
	h.units = append(h.units, &unit{
		assessment: r.assess(w.content, lang, SignalExplicit), pieces: []piece{w.content}, lang: lang, explicit: true, forget: true,
		messages: []int{w.content.src.index}, kind: memory.KindFact, quote: w.request.raw, text: text,
		reason: "the user asked to forget this", everything: w.all,
	})
	h.withheld = true
	r.hearClauses(h, s, w.after, lang, classes)
}

// forgottenAll is what is to be forgotten when everything is.
func forgottenAll(lang string) string {
	if lang == chinese {
		return "关于用户的一切"
	}
	return "everything about the user"
}

// forgottenText tells in the third person what is to be forgotten.
func forgottenText(content piece, lang string) string {
	if lang == chinese {
		// "…这件事" and "…吧" belong to the request, "…的事" to the matter.
		text := tailZH.ReplaceAllStringFunc(content.raw, func(tail string) string {
			if strings.HasPrefix(tail, "的事") {
				return "的事"
			}
			return ""
		})
		src := newSource(content.src.index, strings.TrimPrefix(text, "的"))
		p := src.piece(0, len(src.raw))
		if told, ok := rewriteZH(p); ok {
			return told
		}
		if ownedZH.prefix(p) > 0 {
			return "用户的" + plain(p, chinese)
		}
		return plain(p, chinese)
	}
	src := newSource(content.src.index, tailEN.ReplaceAllString(content.raw, ""))
	p := src.piece(0, len(src.raw))
	if told, ok := rewriteEN(p, false); ok {
		return told
	}
	return plain(p, english)
}

// takeBack handles a request about the previous words: in its own message or, if it is alone there, in an earlier one. These words are
// dropped. Existing memories of them are forgotten as well, unless both are in one sentence.
func (r *Rules) takeBack(h *heard, earlier []*heard, s sentence, alone bool) {
	from := h
	switch {
	case len(h.units) > 0:
		if !takenBack.MatchString(s.norm) {
			return
		}
	case alone:
		for _, e := range slices.Backward(earlier) { // past thanks and greetings
			if from = e; len(e.units) > 0 {
				break
			}
		}
	}
	n := len(from.units)
	if n == 0 || from.units[n-1].forget {
		return
	}
	first := n - 1
	for wholly.MatchString(s.norm) && first > 0 && !from.units[first-1].forget {
		first--
	}
	targets := slices.Clone(from.units[first:])
	from.units = from.units[:first]
	for _, u := range targets {
		h.units = append(h.units, &unit{
			assessment: u.assessment, pieces: u.pieces, class: u.class, lang: u.lang, explicit: true, forget: true, kind: u.kind,
			messages: slices.Compact(append(slices.Clone(u.messages), h.source.index)), text: u.text, quote: u.quote,
			reason: "the user asked to forget what they had said",
		})
	}
}
