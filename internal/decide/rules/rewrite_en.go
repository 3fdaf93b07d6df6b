package rules

import (
	"strings"

	"github.com/memsidecar/memsidecar/internal/lang"
	"github.com/memsidecar/memsidecar/internal/lang/lazyregexp"
)

// token is a word or what stands between two words.
type token struct {
	raw, low string
	word     bool
	quoted   bool
}

func tokens(p piece) []token {
	var out []token
	pos := 0
	for _, w := range p.words {
		if w.start < pos { // the second half of a contraction
			continue
		}
		if w.start > pos {
			out = append(out, token{raw: p.raw[pos:w.start]})
		}
		low := strings.ReplaceAll(p.norm[w.start:w.end], "’", "'")
		out = append(out, token{raw: p.raw[w.start:w.end], low: low, word: true, quoted: strings.ContainsRune(low, masked)})
		pos = w.end
	}
	if pos < len(p.raw) {
		out = append(out, token{raw: p.raw[pos:]})
	}
	return out
}

// retelling is the state of rewriting one English piece.
type retelling struct {
	in        []token
	out       strings.Builder
	mentioned bool // "the user" stands earlier
	named     bool // the speaker occurs
	doubt     bool
	finite    bool // a present-tense verb of "the user" governs: "and" may tie another to it
	plural    bool // the subject is "they" or "the user and …"
}

var (
	reciprocalEN = lazyregexp.New(`\bwe('ve|'re| have| are| were)? (first |both |finally )?(met|meet|dated|dating|married|broke|each|` +
		`together|talked|fought|argued|got together|know each)\b|\beach other\b|\bone another\b`)
	habitualEN = lazyregexp.New(`\b(every|always|often|usually|daily|a lot|mostly|mainly|generally|typically|normally|never|` +
		`sometimes|rarely|before bed|regularly|most days|on weekends)\b`)
	youEN = lazyregexp.New(`\b(you|your|yours|you're|you've|you'll|yourself)\b`)
)

// rewriteEN retells an English piece: "I" becomes "the user", with the verb's agreement. It reports false when the speaker
// does not occur or when retelling would be doubtful.
func rewriteEN(p piece, mentioned bool) (string, bool) {
	if strings.Contains(p.raw, "?") || doubtfulEN(p) || youEN.MatchString(p.norm) || reciprocalEN.MatchString(p.norm) {
		return "", false
	}
	t := &retelling{in: tokens(p), mentioned: mentioned}
	for i := 0; i < len(t.in); {
		i = t.step(i)
	}
	if t.doubt || !t.named {
		return "", false
	}
	return ending(t.out.String(), english), true
}

// next is the position of the next word after i and the text between them; -1 if there is no next word.
func (t *retelling) next(i int) int {
	for j := i + 1; j < len(t.in); j++ {
		if t.in[j].word {
			return j
		}
	}
	return -1
}

func (t *retelling) low(i int) string {
	if i >= 0 && i < len(t.in) {
		return t.in[i].low
	}
	return ""
}

// between reports whether only spaces stand between two words.
func (t *retelling) adjacent(i, j int) bool {
	return i >= 0 && j >= 0 && (j == i+1 || j == i+2 && strings.TrimSpace(t.in[i+1].raw) == "")
}

func (t *retelling) step(i int) int {
	tok := t.in[i]
	if !tok.word || tok.quoted {
		t.out.WriteString(tok.raw)
		return i + 1
	}
	switch tok.low {
	case "i", "i'm", "im", "i've", "ive", "i'd", "i'll", "we", "we're", "we've", "we'd", "we'll":
		return t.subject(i)
	case "my", "our":
		if end := t.coordinated(i); end > 0 {
			return end
		}
		t.mention("the user's", "their")
	case "me", "us":
		if tok.raw == "US" {
			t.out.WriteString(tok.raw)
			return i + 1
		}
		if and := t.next(i); t.low(and) == "and" && !t.mentioned && t.out.Len() == 0 {
			t.plural = true // "me and my wife" as a subject
		}
		t.mention("the user", "them")
	case "mine", "ours":
		t.mention("the user's", "theirs")
	case "myself", "ourselves":
		t.mention("the user", "themselves")
	case "and", "but", "or", "then":
		t.out.WriteString(tok.raw)
		return t.coordinate(i)
	case "to":
		if baseVerbs[t.low(t.next(i))] {
			t.finite = false
		}
		t.out.WriteString(tok.raw)
	case "he", "she", "it", "they", "who", "which", "that", "because", "when", "if", "while", "can", "will", "would", "let", "make",
		"makes", "made", "help", "helps":
		t.finite = false
		t.out.WriteString(tok.raw)
	default:
		t.out.WriteString(tok.raw)
	}
	return i + 1
}

func (t *retelling) mention(first, later string) {
	if t.mentioned {
		t.out.WriteString(later)
	} else {
		t.out.WriteString(first)
	}
	t.mentioned, t.named = true, true
}

// coordinated retells "my wife and I" and returns the position after it, or 0.
func (t *retelling) coordinated(i int) int {
	if t.copula(i) {
		return 0 // "He is my boss and I like him", "There is a leak in my kitchen and I …"
	}
	var names []string
	j := i
	for range 4 {
		k := t.next(j)
		if !t.adjacent(j, k) {
			return 0
		}
		if t.low(k) == "and" {
			if me := t.next(k); t.low(me) == "i" && t.adjacent(k, me) && (len(names) == 1 || len(names) == 2 && beforeKin[strings.ToLower(names[0])]) {
				owner := "the user and their "
				if t.mentioned {
					owner = "they and their "
				}
				t.out.WriteString(owner + strings.Join(names, " "))
				t.mentioned, t.named, t.plural = true, true, true
				return t.verb(me)
			}
			return 0
		}
		names = append(names, t.in[k].raw)
		j = k
	}
	return 0
}

// beforeObject are forms of "be" and prepositions: what follows is no subject.
var beforeObject = lang.Set("is was are were be in at on from about of near by under over through into inside")

// copula reports whether a form of "be" or a preposition stands before position i.
func (t *retelling) copula(i int) bool {
	for j := i - 1; j >= 0; j-- {
		if t.in[j].word {
			low := t.in[j].low
			return beforeObject[low] || strings.HasSuffix(low, "'s")
		}
	}
	return false
}

var beforeKin = lang.Set("best old older oldest younger youngest little big close baby twin new ex good dear whole")

// subject retells "I" or "we" and its verb, and returns the position after the verb.
func (t *retelling) subject(i int) int {
	low := t.in[i].low
	suffix := ""
	if at := strings.IndexByte(low, '\''); at > 0 {
		suffix = low[at:]
	}
	if low == "im" {
		suffix = "'m"
	}
	if low == "ive" {
		suffix = "'ve"
	}
	t.plural = t.mentioned
	if t.plural {
		t.out.WriteString("they")
	} else {
		t.out.WriteString("the user")
	}
	t.mentioned, t.named = true, true
	be, have := "is", "has"
	if t.plural {
		be, have = "are", "have"
	}
	t.finite = !t.plural
	switch suffix {
	case "'m", "'re":
		t.out.WriteString(" " + be)
		return i + 1
	case "'ve":
		t.out.WriteString(" " + have)
		return i + 1
	case "'ll":
		t.out.WriteString(" will")
		t.finite = false
		return i + 1
	case "'d":
		j := t.next(i)
		for adverbs[t.low(j)] && t.low(j) != "better" {
			j = t.next(j)
		}
		if w := t.low(j); (participles[w] && !baseVerbs[w]) || strings.HasSuffix(w, "ed") && !eedVerbs[w] || w == "better" {
			t.out.WriteString(" had")
		} else {
			t.out.WriteString(" would")
		}
		t.finite = false
		return i + 1
	}
	return t.verb(i)
}

// verb writes the adverbs and the verb that follow a subject at position i, and returns the position after the verb.
func (t *retelling) verb(i int) int {
	j := t.next(i)
	for k := i; adverb(t.low(j)) || t.noLonger(j); j = t.next(j) {
		if !t.adjacent(k, j) {
			t.doubt = true // "I, however, …"
			return len(t.in)
		}
		if t.noLonger(j) {
			j = t.next(j)
		}
		k = j
	}
	if j < 0 {
		t.doubt = true
		return len(t.in)
	}
	for k := i + 1; k < j; k++ {
		if !t.in[k].word && strings.TrimSpace(t.in[k].raw) != "" {
			t.doubt = true
			return len(t.in)
		}
		t.out.WriteString(t.in[k].raw)
	}
	t.out.WriteString(t.conjugate(j))
	return j + 1
}

// noLonger reports whether the word at position j begins "no longer", an adverb of two words.
func (t *retelling) noLonger(j int) bool { return t.low(j) == "no" && t.low(t.next(j)) == "longer" }

func adverb(low string) bool {
	return adverbs[low] || strings.HasSuffix(low, "ly") && len(low) > 4 && low != "apply" && low != "rely" && low != "supply" && low != "reply"
}

var notVerbs = lang.Set("and or but the a an my your in on at of for to with from as if that this these those i we he she they who which " +
	"when where what how")

// conjugate is the verb at position j in agreement with the subject.
func (t *retelling) conjugate(j int) string {
	raw, low := t.in[j].raw, t.in[j].low
	t.finite = false
	if notVerbs[low] || t.in[j].quoted || low[0] >= '0' && low[0] <= '9' {
		t.doubt = true
		return raw
	}
	if t.plural {
		switch low {
		case "am":
			return "are"
		case "was":
			return "were"
		case "wasn't", "wasnt":
			return "weren't"
		case "ain't":
			return "aren't"
		case "wanna":
			return "want to"
		case "gotta":
			return "have to"
		}
		return raw
	}
	switch low {
	case "am", "are":
		t.finite = true
		return "is"
	case "were":
		return "was"
	case "weren't", "wasnt":
		return "wasn't"
	case "have", "do":
		t.finite = true
		return thirdPerson(low)
	case "haven't", "havent":
		return "hasn't"
	case "don't", "dont":
		t.finite = true
		return "doesn't"
	case "ain't", "aren't":
		return "isn't"
	case "wanna":
		return "wants to"
	case "gotta":
		return "has to"
	}
	forms, irregular := irregularVerbs[low]
	switch {
	case modals[low], low == "was", low == "wasn't":
		return raw
	case pastForms[low]:
		return raw
	case irregular && forms[0] == low: // "read", "put": past or present
		if t.says(habitualEN) {
			t.finite = true
			return thirdPerson(low)
		}
		return raw
	case strings.HasSuffix(low, "ed") && !eedVerbs[low], strings.HasSuffix(low, "ing") && len(low) > 5:
		return raw
	case raw != low && !baseVerbs[low]: // "I Bob"
		t.doubt = true
		return raw
	}
	t.finite = true
	return thirdPerson(low)
}

func (t *retelling) says(re *lazyregexp.Regexp) bool {
	var b strings.Builder
	for _, tok := range t.in {
		b.WriteString(strings.ToLower(tok.raw))
	}
	return re.MatchString(b.String())
}

// coordinate looks at what follows a conjunction at position i: a verb that still belongs to "the user" is conjugated.
func (t *retelling) coordinate(i int) int {
	j := t.next(i)
	k := i
	for adverb(t.low(j)) && t.adjacent(k, j) {
		k, j = j, t.next(j)
	}
	low := t.low(j)
	if j < 0 || !t.finite || t.plural || !t.adjacent(k, j) || t.in[j].raw != low {
		return i + 1
	}
	follows := t.low(t.next(j))
	determined := set1(follows, "at", "in", "for", "as", "on", "with", "from", "to", "the", "a", "an", "my", "it", "them", "about", "by",
		"every", "two", "three", "home", "there", "here")
	if nounVerbs[low] && !determined || !nounVerbs[low] && !commonVerbs[low] {
		return i + 1
	}
	for x := i + 1; x < j; x++ {
		t.out.WriteString(t.in[x].raw)
	}
	t.out.WriteString(t.conjugate(j))
	return j + 1
}

var (
	impliedBeEN = lazyregexp.New(`^(allergic|born|married|currently|living in|working|studying|planning|thinking of|mom of|dad of|` +
		`father of|mother of)`)
	impliedIsEN = lazyregexp.New(`^been `)
)

// impliedSubject retells a clause that leaves "I" or "I am" out.
func impliedSubject(p piece) (string, bool) {
	if !impliedEN.MatchString(p.norm) {
		return "", false
	}
	subject := "I "
	switch {
	case impliedBeEN.MatchString(p.norm):
		subject = "I am "
	case impliedIsEN.MatchString(p.norm):
		subject = "I have "
	}
	src := newSource(p.src.index, subject+lowerFirst(p.raw))
	return rewriteEN(src.piece(0, len(src.raw)), false)
}

var politeHeadEN = lazyregexp.New(`(?i)^(please |you can |you could |you may |just )+`)

// treatmentEN words how the bot is to treat the speaker: "Call me Bob" is "The user wants the assistant to call them Bob."
func (r *Rules) treatmentEN(p piece) string {
	raw := ending(p.raw, english)
	raw = strings.TrimSuffix(raw, ".")
	when := ""
	if at := strings.IndexByte(raw, ','); at > 0 && r.standing(p.src.piece(p.start, p.start+min(at, p.end-p.start))) && at < 40 {
		when, raw = lowerFirst(raw[:at]), strings.TrimSpace(raw[at+1:])
	} else {
		for _, head := range []string{"from now on ", "going forward ", "in the future "} {
			if len(raw) > len(head) && strings.EqualFold(raw[:len(head)], head) {
				when, raw = strings.TrimSpace(head), raw[len(head):]
			}
		}
	}
	raw = politeHeadEN.ReplaceAllString(raw, "")
	raw = strings.TrimSuffix(raw, " please")
	raw = strings.TrimRight(strings.TrimSuffix(raw, ", please"), ", ")
	wants := "The user wants the assistant to "
	lower := strings.ToLower(raw)
	switch {
	case strings.HasPrefix(lower, "don't "), strings.HasPrefix(lower, "don’t "), strings.HasPrefix(lower, "do not "):
		wants = "The user wants the assistant not to "
		raw = raw[strings.IndexByte(raw, ' ')+1:]
		raw = strings.TrimPrefix(raw, "not ")
	case strings.HasPrefix(lower, "i "), strings.HasPrefix(lower, "i'd "), strings.HasPrefix(lower, "i’d "):
		return r.wish(p)
	}
	src := newSource(p.src.index, lowerFirst(raw))
	q := src.piece(0, len(src.raw))
	text, ok := rewriteEN(src.piece(0, len(src.raw)), true)
	switch {
	case youEN.MatchString(strings.ReplaceAll(q.norm, "your ", "")):
		return r.said(p, english)
	case !ok:
		text = ending(raw, english)
	}
	text = strings.TrimSuffix(wants+lowerFirst(text), ".")
	text = strings.NewReplacer(" your ", " its ").Replace(text)
	if when != "" {
		text += " " + when
	}
	return text + "."
}

var wishEN = lazyregexp.New(`^i('d| would)? (want|prefer|like) (you|it if you) to `)

// wish words "I'd like you to …".
func (r *Rules) wish(p piece) string {
	end := matchEnd(wishEN, p.norm)
	if end == 0 {
		return r.said(p, english)
	}
	src := newSource(p.src.index, p.raw[end:])
	q := src.piece(0, len(src.raw))
	if youEN.MatchString(q.norm) {
		return r.said(p, english)
	}
	text, ok := rewriteEN(q, true)
	if !ok {
		text = ending(q.raw, english)
	}
	return "The user wants the assistant to " + lowerFirst(text)
}
