package rules

import (
	"github.com/memsidecar/memsidecar/internal/lang"
	"github.com/memsidecar/memsidecar/internal/lang/lazyregexp"
)

// One sentence may state several things: "我住在北京，对花生过敏", "I live in Rome and I'm allergic to nuts". Each becomes a statement of its own,
// so that one can change or be forgotten without the other.

var (
	// ownStateZH begins a clause whose subject is the speaker, not a relative.
	ownStateZH = lazyregexp.New(`^(我|本人)(叫|是|住|在|对|有|养|爱|怕|不|属|姓|从|来自|今年|现在|目前|一直|平时|最|很|特别|非常|也|还|喜欢|讨厌|已经|刚)`)
	// ownFactZH begins a clause without a subject that tells something else of the same person.
	ownFactZH = lazyregexp.New(`^(也|还|现在|目前|平时)?(对[^，]{1,12}过敏|住|在[^，]{1,12}(工作|上班|上学|读书|读研|当|做)|来自|毕业于|老家|养了|单身|已婚|未婚|(最|很|特别|非常|` +
		`不)?(喜欢|讨厌|爱吃|吃素))`)
)

// apart reports whether a clause tells something else of the speaker than the unit before it, which both can stand alone.
func (r *Rules) apart(g *grammar, u *unit, c piece, lang string) bool {
	if lang != chinese || u.class != statement {
		return false
	}
	p := u.pieces[0]
	if !u.own && !ownStateZH.MatchString(skipTimeZH(g.stripLead(p)).norm) || !ownFactZH.MatchString(skipTimeZH(c).norm) || g.dangling(p, lang) ||
		bringsZH.MatchString(p.norm) || bringsPetZH.MatchString(p.norm) && !humanZH.MatchString(c.norm) {
		return false
	}
	return r.assess(p, lang).score >= r.threshold && r.assess(c, lang).score >= r.threshold
}

var (
	// ownVerbs are what "I" does in a clause that tells something else than the one before.
	ownVerbs = lang.Set("am have live work like love hate prefer own study speak play can't don't never always")
	// company are the words after which "and I" is more than one person.
	company = lang.Set("he she they him her them me you wife husband partner girlfriend boyfriend mother father mom mum dad brother " +
		"sister son daughter friend friends family kids children parents cousin uncle aunt colleague boss team dog cat")
)

// ownCuts are the places before "and I …" that begin something else, where there is no comma: the sentence has told something of
// the speaker before it, and who stands before "and" does nothing together with the speaker.
func (s sentence) ownCuts() []int {
	if len(s.words) < 6 || !set1(s.words[0].norm, "i", "i'm", "i've", "im", "ive", "my") {
		return nil
	}
	var cuts []int
	for i := 3; i+2 < len(s.words); i++ {
		if s.words[i].norm != "and" || company[s.words[i-1].norm] {
			continue
		}
		switch next := s.words[i+1].norm; {
		case next == "i'm", next == "i've", next == "i" && ownVerbs[s.words[i+2].norm]:
			cuts = append(cuts, s.words[i].start)
		}
	}
	return cuts
}
