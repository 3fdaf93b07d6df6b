package rules

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/memsidecar/memsidecar/internal/lang/lazyregexp"
)

// word puts a unit into words: its text in the third person, its quotation, its reason and kind.
func (r *Rules) word(u *unit) {
	if u.reason == "" {
		u.reason = r.reason(u.assessment)
	}
	if u.kind == "" {
		u.kind = r.kind(u.assessment)
	}
	if u.quote == "" {
		u.quote = r.cap(strings.TrimRight(u.pieces[0].raw, "，,、 "), u.lang)
		for _, p := range u.pieces[1:] {
			u.quote += gap(u.lang) + p.raw
		}
		if u.intro.src != nil {
			u.quote = u.intro.raw + "\n" + u.quote
		}
	}
	if u.text != "" {
		return
	}
	u.text = r.tell(u)
	for _, p := range u.pieces[1:] {
		// "He is three." is in the third person already; it may still speak of "me".
		text, ok := plain(p, u.lang), true
		if r.self(p, u.lang) && (u.lang != chinese || p.has("我", "俺", "咱", "本人")) {
			text, ok = rewrite(p, u.lang, strings.Contains(strings.ToLower(u.text), "the user"))
		}
		if ok && utf8.RuneCountInString(u.text)+utf8.RuneCountInString(text) < r.maxRunes {
			if u.lang == chinese {
				u.text += "。"
			}
			u.text += gap(u.lang) + text
		}
	}
}

// stressed is a word that is set off as in Markdown.
var stressed = lazyregexp.New(`\*{1,3}([\pL\pN][^*\n]{0,60}?)\*{1,3}`)

// unmarked is a piece without such marks.
func unmarked(p piece) piece {
	if !strings.Contains(p.raw, "*") {
		return p
	}
	src := newSource(p.src.index, stressed.ReplaceAllString(p.raw, "$1"))
	return src.piece(0, len(src.raw))
}

// doThisZH begins what the bot is asked to remember to do.
var doThisZH = lazyregexp.New(`^.{0,8}(提醒|叫醒|通知|告诉|叫)我`)

var (
	// How one greets, told in one breath with the matter: "my name is Linda and I'm glad to meet you".
	meetingEN = lazyregexp.New(`[,.]? (and|,) ?(i am |i'm |it is |it's |its )?(so |very |really |quite )*(glad|happy|nice|pleased|` +
		`great|lovely|delighted) to (meet|see|know|talk to|chat with) you( too| all)?[.!]*$`)
	meetingZH = lazyregexp.New(`[，,]?(我?也?(很|非常|真|十分)?(高兴|荣幸|开心|幸会)(能)?(认识|见到|遇见|遇到)(你|您)(们)?了?|请多(多)?(关照|指教))[。！!～~]*$`)
	// What one finds of the bot's words, before what is the matter: "That sounds good, but my days are full".
	verdictEN = lazyregexp.New(`^(that|this|it|these|those|they)( all)?( is| are|'s|'re)?( sounds?| seems?| looks?)?( really| very| ` +
		`quite| all| like)*( an?)? (good|great|nice|helpful|useful|interesting|true|fine|wonderful|lovely|tempting)( [a-z]+)?,? but `)
	verdictZH = lazyregexp.New(`^(这|那|这个|那个)?(听(着|起来|上去)|说得|说的|想法|建议|主意)?(都|也|是|很|挺|真|蛮)*(不错|很好|挺好|有道理|可以|对)(的)?[，,]?(但是|但|不过|可是|只是)`)
)

// withoutCourtesy is a piece without the greeting that it ends with and the verdict on the bot's words that it begins with.
func withoutCourtesy(p piece, lang string) piece {
	tail, head := meetingEN, verdictEN
	if lang == chinese {
		tail, head = meetingZH, verdictZH
	} else if !p.hasWord("you", "but") {
		return p
	}
	if at := matchStart(tail, p.norm); at > 0 {
		p = p.src.piece(p.start, p.start+at)
	}
	if end := matchEnd(head, p.norm); end > 0 && end < len(p.norm) {
		p = p.from(end)
	}
	return p
}

var sinceEN = lazyregexp.New(`^(since|because|as|although|though) (i|i'm|i've|my|we)\b`)

// dropSince drops the conjunction of a subordinate clause whose main clause, a question, is not part of the piece.
func dropSince(p piece) piece {
	if !strings.Contains(strings.TrimRight(p.norm, ", "), ",") && sinceEN.MatchString(p.norm) {
		return p.from(strings.IndexByte(p.norm, ' '))
	}
	return p
}

// dropUnfinished drops "but lately" from an end where nothing came that could be told.
func dropUnfinished(p piece) piece {
	if at := matchStart(unfinishedEN, p.norm); at > 0 && len(strings.TrimSpace(p.norm[:at])) > 8 {
		return p.src.piece(p.start, p.start+len(strings.TrimRight(p.norm[:at], ", ")))
	}
	return p
}

func gap(lang string) string {
	if lang == chinese || lang == japanese {
		return ""
	}
	return " "
}

// tell retells the first piece of a unit.
func (r *Rules) tell(u *unit) string {
	g := r.grammarOf(u.lang)
	p := withoutCourtesy(named(dropSince(dropUnfinished(g.stripLead(unmarked(u.introduced()))))), u.lang)
	if p.runes() > r.maxRunes-20 {
		return r.said(p, u.lang)
	}
	text := ""
	switch {
	case u.class == command:
		text = r.tellRecord(p, u.lang)
	case u.lang == chinese && u.class == treatment:
		text = r.treatmentZH(p)
	case u.lang == chinese:
		text = r.tellZH(u, p)
	case u.lang == english && u.class == treatment:
		text = r.treatmentEN(p)
	case u.lang == english:
		text = r.tellEN(u, p)
	}
	if text == "" {
		return r.said(u.pieces[0], u.lang)
	}
	return text
}

// tellZH retells a Chinese statement, or returns "".
func (r *Rules) tellZH(u *unit, p piece) string {
	text, ok := rewriteZH(p)
	if u.explicit && doThisZH.MatchString(p.norm) {
		if !ok {
			text = plain(p, u.lang)
		}
		return "用户要求助手" + text
	}
	self := r.self(p, u.lang)
	switch {
	case ok:
		return text
	case doubtfulZH(p) && !u.explicit:
		return ""
	case self && impliedZH.MatchString(skipTimeZH(p).norm), u.explicit && leadTimeZH.MatchString(p.norm) && !ownSubject.MatchString(p.norm):
		return "用户" + plain(p, u.lang)
	case u.explicit:
		return "用户要求记住：" + plain(p, u.lang)
	case !self:
		return withSubjectZH(p)
	}
	return ""
}

// tellEN retells an English statement, or returns "".
func (r *Rules) tellEN(u *unit, p piece) string {
	if u.explicit && p.word(0) == "to" { // "remember to buy milk"
		text, ok := rewriteEN(p, true)
		if !ok {
			text = plain(p, u.lang)
		}
		return "The user wants to remember " + lowerFirst(text)
	}
	if text, ok := rewriteEN(p, false); ok {
		return text
	}
	if text, ok := impliedSubject(p); ok {
		return text
	}
	if !r.self(p, u.lang) && !p.hasWord("you", "your") && len(p.words) > 2 {
		return plain(p, u.lang)
	}
	return ""
}

// said quotes a piece whose rewriting would be doubtful.
func (r *Rules) said(p piece, lang string) string {
	quote := strings.TrimSpace(p.raw)
	switch lang {
	case chinese:
		return "用户说：“" + r.cap(quote, lang) + "”"
	case japanese:
		return "ユーザーは「" + r.cap(quote, lang) + "」と言った。"
	case korean:
		return `사용자가 "` + r.cap(quote, lang) + `"라고 말했다.`
	}
	return `The user said: "` + r.cap(quote, lang) + `"`
}

// cap shortens a text to the longest statement, at a word's end where there is one near.
func (r *Rules) cap(s, lang string) string {
	limit := r.maxRunes - 30 // leaves room for what is put around it
	if len(s) <= limit || utf8.RuneCountInString(s) <= limit {
		return s
	}
	end := 0
	for i := range s {
		if limit == 0 {
			end = i
			break
		}
		limit--
	}
	s = s[:end]
	if at := strings.LastIndexByte(s, ' '); lang != chinese && at > end-40 && at > 0 {
		s = s[:at]
	}
	return s + "…"
}

// plain is a statement that needs no retelling: trimmed, with an end.
func plain(p piece, lang string) string {
	s := strings.TrimFunc(p.raw, func(c rune) bool {
		return unicode.IsSpace(c) || strings.ContainsRune(",，、;；:：~～—-…", c)
	})
	return ending(s, lang)
}

// ending gives a sentence its first capital and full stop. Chinese statements go without one, as notes do.
func ending(s, lang string) string {
	s = strings.TrimRightFunc(s, func(c rune) bool {
		return unicode.IsSpace(c) || unicode.Is(unicode.So, c) || strings.ContainsRune(",，、;；:：~～—!！。", c) || c == '\u200d' || c == '\ufe0f'
	})
	if lang != english {
		return strings.TrimRight(s, ".…")
	}
	s = strings.TrimRight(s, ".")
	if at := matchStart(trailingEN, s); at > 8 {
		s = strings.TrimRight(s[:at], " ,.!")
	}
	if s == "" {
		return s
	}
	c, n := utf8.DecodeRuneInString(s)
	s = string(unicode.ToUpper(c)) + s[n:]
	if last, _ := utf8.DecodeLastRuneInString(s); last != '?' && last != '…' {
		s += "."
	}
	return s
}

var trailingEN = lazyregexp.New(`(?i)([ ,.!]+(btw|by the way|lol|lmao|haha+|hehe|tbh|fyi|you know|xd|:\)|:d))+$`)

func lowerFirst(s string) string {
	c, n := utf8.DecodeRuneInString(s)
	return string(unicode.ToLower(c)) + s[n:]
}

// rewrite retells a piece in the third person; mentioned is true when the user has been named before. It reports false when
// that would be doubtful.
func rewrite(p piece, lang string, mentioned bool) (string, bool) {
	switch lang {
	case chinese:
		return rewriteZH(p)
	case english:
		return rewriteEN(p, mentioned)
	}
	return "", false
}
