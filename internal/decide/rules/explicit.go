package rules

import (
	"strings"
	"unicode/utf8"

	"github.com/memsidecar/memsidecar/internal/lang/lazyregexp"
)

// request is what a sentence asks about remembering.
type request int

const (
	noRequest    request = iota
	remember             // what the sentence says
	rememberBack         // what was said before
	rememberNext         // what follows in the message
	forgetThis           // not what this sentence says
	forgetAround         // not what was said around it
)

// requests are the fixed phrases around explicit requests; the requests' own words are the signal's.
type requests struct {
	polite     *index // before the request's verb
	asking     *index // makes a question a request: "can you remember that I …?"
	after      *index // after the verb, before the content
	deictic    *index // content that refers to something said before
	forget     *index // asks for the contrary, anywhere
	forgetHead *index // the same, only at the beginning of a clause
	reminisce  *index // content that makes "remember" a question about the past
}

func newRequests() *requests {
	with := func(zh, en string) *index { return indexOf(append(strings.Fields(zh), lines(en)...)...) }
	return &requests{
		polite: with(`请 请你 请您 麻烦 麻烦你 麻烦您 帮我 帮忙 帮我把 替我 给我 你 您 你们 能不能 能 能否 可以 可不可以 要 一定 一定要 务必 千万 千万要 必须 得 我想让你 我想请你 我希望你 我要你 我需要你 希望你 拜托 `+
			`拜托你 那 就 也 也要 还要 还有 顺便 好好 永远 先 都 再 要是能`,
			`please, hey, ok, okay, so, also, and, just, you should, you must, you can, you need to, you have to, can you, could you, `+
				`would you, will you, can you please, could you please, would you please, i want you to, i need you to, i would like you `+
				`to, i would like you, make sure to, make sure you, be sure to, always, now, kindly, try to, let us, for future `+
				`reference, oh, oh and, btw, by the way, but`),
		asking: with(`能不能 能 能否 可以 可不可以 请 麻烦`, `can you, could you, would you, will you, please, would you mind`),
		after: with(`一下 下 了 哦 哈 啊 呀 吧 住 着 这个 这一点 这点 这件事 以下 以下内容 下面`,
			`that, this, it, the following, these, the fact that, about me, for me, for later, please, down`),
		deictic: with(`这个 这些 这点 这一点 这件事 这事 这句话 我说的 我说的话 我刚才说的 我刚才说的话 我刚说的 刚才说的 刚才的话 上面的 上面说的 这 它 那个 这条 这条信息 这个信息 以上 以上内容 这几点 哦 吧 好吗 可以吗 `+
			`行吗 我的话 这段话 一下 了 我 这个吧 我刚才说的这些 刚才那些 刚才那个 这个事情 以下几点 下面几点 以下内容 以下信息 下面的内容 下面的话 几点 几件事 几条 内容 信息`,
			`this, that, it, this one, these, those, them, all this, all that, all of this, all of that, what i said, what i just said, `+
				`what i told you, what i just told you, everything i said, this for me, that for me, it for me, this please, that please,`+
				` it please, this for later, that for later, please, for me, the following, the following things, the following facts, `+
				`these things, these facts, a few things, some things about me, this information, this fact, me, it for later, the above,`+
				` what i said before, my words`),
		forget: with(`别记 不要记 不用记 不必记 无需记 别保存 不要保存 不用保存 不要存下 别存 当我没说 就当没说 别往心里记 不需要记`,
			`do not remember this, do not remember that, do not remember it, do not remember what, do not remember my, do not remember `+
				`anything, do not remember me, do not save, do not store, do not record, do not keep this, do not keep that, do not note,`+
				` do not write this down, do not write that down, no need to remember, no need to save, no need to note, you do not need `+
				`to remember, you do not have to remember, you need not remember, off the record, do not memorize, do not memorise, `+
				`please forget, do not remember, this is not to be remembered`),
		forgetHead: with(`忘掉 忘了吧 忘了这 忘了刚才 忘了我说 忘了我刚 请忘 忘记刚 忘记这 忘记我说 忘记我刚 忘记上 删掉 删除`,
			`forget that, forget this, forget what i, forget everything, forget my, forget about my, forget i said, forget all, scratch `+
				`that, disregard, strike that, unremember, delete that, delete this, erase that, erase this, ignore what i said`),
		reminisce: indexOf(lines(`when, how, what, where, who, why, which, the time, the day, the good old days, the last time`)...),
	}
}

var notForgetting = lazyregexp.New(`^(别|不要|不用|不必)记(错|恨|仇|混|反|岔)`)

// notedAsZH matches an entry of a log, "记录为…" or "记录在…", which is no request.
var notedAsZH = lazyregexp.New(`^记录(为|在|到|了|的|着|仪|员|表|片|并|和|、)`)

// request finds an explicit request in a sentence: what is asked, the clauses before it, which are judged as usual, and
// what is to be remembered. What stands before heardUpTo in the message belongs to an earlier request.
func (r *Rules) request(s sentence, clauses []piece, lang string, heardUpTo int) (asked request, before []piece, content piece) {
	g := r.grammarOf(lang)
	if r.forgets(s) {
		return r.forgetScope(s), nil, piece{}
	}
	if lang != chinese && lang != english {
		if phrase, ok := r.explicit.any(s.piece); ok && !s.question {
			if s.runes() < utf8.RuneCountInString(phrase)+8 { // little but the request: it speaks of what was said before
				return remember, nil, s.src.piece(max(heardUpTo, runeStart(s.src.raw, s.end-maxSentenceBytes/2)), s.end)
			}
			return remember, nil, s.piece
		}
		return noRequest, nil, piece{}
	}
	for k, c := range clauses {
		body, politely := r.politely(g, c)
		n := r.explicit.prefix(body)
		if n == 0 || notedAsZH.MatchString(body.norm) {
			continue
		}
		rest := s.src.piece(body.start+n, s.end).from(0)
		if s.asks() { // "can you remember that I'm vegan?": the mark belongs to the request
			end := strings.TrimRight(rest.norm, "？?。.!！ ")
			rest = s.src.piece(rest.start, rest.start+len(strings.TrimSuffix(end, "吗")))
		}
		rest = r.cutQuestions(g, rest, s, lang)
		if r.requests.reminisce.prefix(rest) > 0 || s.asks() && !r.asksToRemember(politely, rest, lang) {
			return noRequest, nil, piece{}
		}
		if !rest.empty() && !r.requests.deictic.whole(rest) {
			return remember, clauses[:k], r.contentOf(rest, lang)
		}
		switch {
		case s.colon:
			return rememberNext, nil, piece{}
		case k > 0 && !g.filler.whole(clauses[0]):
			return remember, nil, s.src.piece(clauses[0].start, clauses[k-1].end)
		}
		return rememberBack, nil, piece{}
	}
	return noRequest, nil, piece{}
}

// asks reports whether a sentence is a question in form.
func (s sentence) asks() bool {
	body := strings.TrimRight(s.norm, "？?。 ")
	return s.question || strings.HasSuffix(body, "吗") || strings.HasSuffix(body, "么")
}

// asksToRemember tells a polite request in the form of a question from a question about what the bot remembers.
func (r *Rules) asksToRemember(politely bool, content piece, lang string) bool {
	switch {
	case !politely:
		return false
	case questionWordZH.MatchString(content.norm):
		return content.has("可不可以", "能不能")
	case lang == english:
		return content.hasWord("i", "is", "am", "are", "that", "have", "this", "it")
	}
	return true
}

// contentOf drops what stands between the verb of a request and its content.
func (r *Rules) contentOf(rest piece, lang string) piece {
	for range 3 {
		n := r.requests.after.prefix(rest)
		if n == 0 || n >= len(rest.norm) || lang == english && rest.norm[:n] == "it" {
			break
		}
		// "this is …" and "that dog" belong to the content; "this:" and "that I …" do not.
		if next := rest.from(n); lang == english && (strings.HasPrefix(rest.norm, "this ") || set1(next.word(0), "is", "was", "are", "one")) {
			break
		}
		rest = rest.from(n)
	}
	return rest
}

// politely drops what may stand before the verb of a request, and tells whether it makes a question a request.
func (r *Rules) politely(g *grammar, c piece) (body piece, asking bool) {
	body = g.stripLead(c)
	for range 6 {
		asking = asking || r.requests.asking.prefix(body) > 0
		if r.explicit.prefix(body) > 0 {
			break
		}
		n := r.requests.polite.prefix(body)
		if n == 0 || n >= len(body.norm) {
			break
		}
		body = body.from(n)
	}
	return body, asking
}

// cutQuestions ends the content of a request before a question or command that follows it.
func (r *Rules) cutQuestions(g *grammar, rest piece, s sentence, lang string) piece {
	parts := sentence{piece: rest}.clauses()
	for i, c := range parts {
		last := i == len(parts)-1
		if i > 0 && (g.classify(c, lang, last && s.question) == question || g.filler.whole(c) || r.requests.deictic.whole(c) || r.explicit.prefix(c) > 0) {
			return s.src.piece(rest.start, parts[i-1].end)
		}
	}
	return rest
}

// forgets reports whether a sentence asks not to remember something.
func (r *Rules) forgets(s sentence) bool {
	for _, h := range r.requests.forget.find(s.piece) {
		before := s.norm[:h.start]
		if notForgetting.MatchString(s.norm[h.start:]) || strings.HasSuffix(before, "我") || strings.HasSuffix(before, "我也") || s.question {
			continue
		}
		if subject := lastWord(s.words, h.start); set1(subject, "i", "we", "they", "he", "she", "just", "really", "still", "honestly") {
			continue
		}
		return true
	}
	for _, c := range s.clauses() {
		for range 4 {
			if r.requests.forgetHead.prefix(c) > 0 {
				return !s.question
			}
			n := r.requests.polite.prefix(c)
			if n == 0 || n >= len(c.norm) {
				break
			}
			c = c.from(n)
		}
	}
	return false
}

// runeStart is the first position at or after at where a character begins, at least 0.
func runeStart(text string, at int) int {
	at = max(at, 0)
	for at < len(text) && !utf8.RuneStart(text[at]) {
		at++
	}
	return at
}

func lastWord(words []word, before int) string {
	last := ""
	for _, w := range words {
		if w.start >= before {
			break
		}
		last = w.norm
	}
	return last
}

// forgetScope: a request that says itself what it is about concerns its own sentence, any other what stands around it.
func (r *Rules) forgetScope(s sentence) request {
	if s.colon {
		return forgetAround
	}
	rest := s.norm
	for _, h := range append(r.requests.forget.find(s.piece), r.requests.forgetHead.find(s.piece)...) {
		if h.end < len(s.norm) {
			rest = s.norm[h.end:]
		} else {
			rest = ""
		}
	}
	p := s.src.piece(s.end-len(rest), s.end).from(0)
	if p.empty() || r.requests.deictic.whole(p) || p.runes() <= 8 && p.has("这", "刚才", "上面") || len(p.words) <= 3 &&
		p.hasWord("this", "that", "it", "said", "told") {
		if head := s.norm[:len(s.norm)-len(rest)]; len(head) > 60 {
			return forgetThis
		}
		return forgetAround
	}
	return forgetThis
}
