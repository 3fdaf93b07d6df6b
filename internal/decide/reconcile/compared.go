package reconcile

import "github.com/memsidecar/memsidecar/internal/lang/lazyregexp"

// Who likes one thing more than another says of the other that it is not what they prefer. "Prefers tea to coffee" takes the place of
// "prefers coffee"; of "likes coffee" only when it tells that this is so now.

var (
	moreEN = []*lazyregexp.Regexp{
		lazyregexp.New(`(?i)^the user (?:[a-z]+ ){0,4}?more (?:into|of an?|fond of|drawn to|interested in|keen on|about) (.+?) ` +
			`than(?: of| into| an?| to| in| about)* (.+)$`),
		lazyregexp.New(`(?i)^the user (?:[a-z]+ ){0,3}?(?:likes?|loves?|enjoys?) (.+?) (?:more|better) than (.+)$`),
		lazyregexp.New(`(?i)^the user (?:[a-z]+ ){0,3}?prefers? (.+?) (?:to|over|rather than) (.+)$`),
	}
	moreZH = []*lazyregexp.Regexp{
		lazyregexp.New(`^(?:用户)?(?:比起|相比|与|和|跟)(.+?)(?:相比)?;用户?(?:现在|最近|如今|还是)*更(?:喜欢|爱|偏爱|想)(.+)$`),
		lazyregexp.New(`^用户(?:现在|最近|如今)*(?:喜欢|爱)(.+?)(?:胜过|多过|超过)(.+)$`),
	}
	prefersEN = lazyregexp.New(`(?i)\bprefers?\b|\bmore\b`)
	nowadays  = lazyregexp.New(`(?i)\b(?:now|these days|nowadays|lately|recently|anymore)\b|现在|如今|最近`)
	prefersZH = lazyregexp.New(`更|偏爱|胜过`)
)

// lesser is what a statement likes less than something else, and whether it says that this is so now.
type lesser struct {
	words, named []string // of content, and of these those that tell it from others; none when nothing is compared
	now          bool
}

func (r *reading) readLesser() lesser {
	text := commaless(r.text)
	object := ""
	for _, re := range moreEN {
		for _, c := range r.clauses {
			if m := re.FindStringSubmatch(c); m != nil && object == "" {
				object = trailing.ReplaceAllString(m[2], "")
			}
		}
	}
	if m := moreZH[0].FindStringSubmatch(text); m != nil {
		object = m[1]
	} else if m := moreZH[1].FindStringSubmatch(text); m != nil {
		object = m[2]
	}
	words := spoken(object)
	return lesser{words, without(words, activities), nowadays.MatchString(text)}
}

// demoted reports why the newer statement takes the place of an older one that prefers what is now liked less, or "".
func demoted(newer, older *reading) string {
	less := newer.lesser()
	if len(less.named) == 0 || len(older.clauses) != 1 || !within(less.named, older.words) || whose(newer) != whose(older) {
		return ""
	}
	if !less.now && !prefersEN.MatchString(older.text) && !prefersZH.MatchString(older.text) {
		return ""
	}
	old := older.core()
	if !old.denies && len(older.lesser().words) == 0 && within(old.named, less.words) {
		return "something else is preferred to it"
	}
	return ""
}
