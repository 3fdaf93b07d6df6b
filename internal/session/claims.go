package session

import (
	"context"
	"embed"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/memsidecar/memsidecar/internal/lang"
	"github.com/memsidecar/memsidecar/internal/lang/lazyregexp"
	"github.com/memsidecar/memsidecar/internal/lang/lexical"
	"github.com/memsidecar/memsidecar/internal/memory"
)

// ShownList is a numbered list that is shown in a conversation's place.
type ShownList struct {
	Items   []ShownItem
	ShownAt time.Time
}

// ShownItem is an item of a list.
type ShownItem struct {
	Number                 int
	Key, Title, Attributes string
}

// claims finds short replies without tool calls that claim a result which neither the conversation's tools nor its lists have: a
// made-up URL, a find, or an item under a wrong number. A model that reads such a reply in the next window would believe it.
type claims struct{ maxRunes int }

// evidence is what claims are compared with.
type evidence struct {
	lists []ShownList
	text  string // texts of people and tools, folded
}

//go:embed phrases/*.txt
var phraseFiles embed.FS

var (
	foundPhrases  = lang.Files(phraseFiles, "phrases/found.txt")
	resultPhrases = lang.Files(phraseFiles, "phrases/results.txt")
	notPhrases    = lang.Files(phraseFiles, "phrases/not.txt")
)

// foldClaim makes texts comparable: lower case, half width, simplified characters, straight apostrophes.
func foldClaim(text string) string {
	return lexical.Simplified(strings.ToLower(norm.NFKC.String(strings.ReplaceAll(text, "’", "'"))))
}

var (
	// address matches a URL, a magnet link, or (in a group) a path such as /mv/823D.
	address = lazyregexp.New(`(?:(?:https?|ftp|ed2k|thunder)://|magnet:\?|www\.)[^\s<>"'，。；！？、（）()《》「」【】\[\]]+` +
		`|\b[a-z0-9-]+(?:\.[a-z0-9-]+)*\.[a-z]{2,6}/[^\s<>"'，。；！？、（）()《》「」【】\[\]]+` +
		`|(?:^|[^a-z0-9./_-])(/[\p{L}\p{N}_.%-]+(?:/[\p{L}\p{N}_.%-]+)+/?)`)
	scheme = lazyregexp.New(`^(?:[a-z0-9]+://)?(?:www\.)?`)
	// titled matches a number of the list with a title: 第3部是《…》, number 3 is "…".
	titled = lazyregexp.New(`(?:第\s*(\d{1,3})\s*\pL{0,3}?\s*(?:是|叫|为|:)?\s*|` +
		`(?:number|no\.|item|#)\s*(\d{1,3})\s*(?:is|:|,)?\s*|(?:^|\n)\s*(\d{1,3})\s*[.)、:]\s*)` +
		`(?:《([^》\n]+)》|"([^"\n]+)"|“([^”\n]+)”)`)
	counted = lazyregexp.New(`\d`)
)

// candidate reports whether a reply is short and may claim something. It needs no evidence, so ordinary replies are cheap.
func (c claims) candidate(content string) bool {
	const longest = 16 << 10 // including URLs; longer replies are not checked
	if c.maxRunes <= 0 || content == "" || len(content) > longest {
		return false
	}
	if !strings.ContainsAny(content, "/／?？") && width(content) >= 3*c.maxRunes {
		return false // too long even without the URLs, which are removed below
	}
	text := foldClaim(content)
	return width(address.ReplaceAllString(text, "")) < 3*c.maxRunes &&
		(address.MatchString(text) || titled.MatchString(text) || claimsFind(text))
}

// width is the length of a text in thirds: three Latin letters count as one Chinese character.
func width(text string) (n int) {
	for _, r := range text {
		if n++; unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul) {
			n += 2
		}
	}
	return n
}

// unsupported reports whether a reply claims something without evidence.
func (e *evidence) unsupported(content string) bool {
	text := foldClaim(content)
	addresses := address.FindAllStringSubmatch(text, -1)
	for _, found := range addresses {
		a := found[0]
		if found[1] != "" { // without the character before a path
			a = found[1]
		}
		if !e.hasAddress(strings.TrimRight(a, ".,:;!?*`/")) {
			return true
		}
	}
	for _, m := range titled.FindAllStringSubmatch(text, -1) {
		if !e.hasNumbered(m[1]+m[2]+m[3], m[4]+m[5]+m[6]) {
			return true
		}
	}
	return len(addresses) == 0 && claimsFind(text) && !e.mentioned(text)
}

// claimsFind reports whether a reply says that something was found or done.
func claimsFind(text string) bool {
	if end := strings.TrimRightFunc(text, unicode.IsSpace); strings.HasSuffix(end, "?") || strings.HasSuffix(end, "吗") {
		return false
	}
	for _, phrase := range foundPhrases {
		at := strings.Index(text, phrase)
		if at < 0 || !whole(text, at, at+len(phrase)) || negated(text[:at]) {
			continue
		}
		for _, result := range resultPhrases {
			if i := strings.Index(text[at:], result); i >= 0 && whole(text, at+i, at+i+len(result)) {
				return true
			}
		}
		if counted.MatchString(text[at:]) {
			return true
		}
	}
	return false
}

// whole reports whether a part of a text does not cut a Latin word.
func whole(text string, start, end int) bool {
	before, _ := utf8.DecodeLastRuneInString(text[:start])
	first, _ := utf8.DecodeRuneInString(text[start:])
	last, _ := utf8.DecodeLastRuneInString(text[:end])
	after, _ := utf8.DecodeRuneInString(text[end:])
	latin := func(r rune) bool { return unicode.Is(unicode.Latin, r) }
	return (!latin(before) || !latin(first)) && (!latin(last) || !latin(after))
}

// negated reports whether the words shortly before a phrase, in the same sentence, negate it.
func negated(before string) bool {
	const near = 8
	if at := strings.LastIndexAny(before, ".!?;\n。"); at >= 0 {
		before = before[at+1:]
	}
	if words := strings.Fields(before); len(words) > near {
		before = strings.Join(words[len(words)-near:], " ")
	}
	if runes := []rune(before); len(runes) > 4*near {
		before = string(runes[len(runes)-4*near:])
	}
	for _, not := range notPhrases {
		for from := 0; ; {
			at := strings.Index(before[from:], not)
			if at < 0 {
				break
			}
			if at += from; not == "n't" || whole(before, at, at+len(not)) {
				return true
			}
			from = at + len(not)
		}
	}
	return false
}

// hasAddress reports whether an address, or its path, belongs to an item or was mentioned by a person or a tool.
func (e *evidence) hasAddress(a string) bool {
	bare := scheme.ReplaceAllString(a, "")
	path := a
	if at := strings.IndexByte(bare, '/'); at >= 0 {
		path = bare[at:]
	} else if !strings.HasPrefix(a, "magnet:") {
		return true // a site, not a result
	}
	const shortest = 4 // of a path; shorter ones occur in any text
	if contains(e.text, bare) || len(path) >= shortest && contains(e.text, path) {
		return true
	}
	for _, l := range e.lists {
		for i := range l.Items {
			key := strings.TrimRight(foldClaim(l.Items[i].Key), "/")
			switch {
			case key == "":
			case bare == scheme.ReplaceAllString(key, ""), strings.HasSuffix(bare, "/"+strings.TrimPrefix(key, "/")),
				path != "/" && len(path) >= shortest && strings.HasSuffix(key, path), contains(foldClaim(l.Items[i].Attributes), bare):
				return true
			}
		}
	}
	return false
}

// contains reports whether a text has the whole address.
func contains(text, address string) bool {
	for from := 0; ; {
		at := strings.Index(text[from:], address)
		if at < 0 {
			return false
		}
		end := from + at + len(address)
		if next, _ := utf8.DecodeRuneInString(text[end:]); next == utf8.RuneError || !unicode.IsLetter(next) && !unicode.IsDigit(next) {
			return true
		}
		from = end
	}
}

// hasNumbered reports whether an item of that number has the title. It is true if no list has that number.
func (e *evidence) hasNumbered(number, title string) bool {
	for _, l := range e.lists {
		for i := range l.Items {
			if other := foldClaim(l.Items[i].Title); number == decimal(l.Items[i].Number) && sameTitle(title, other) {
				return true
			}
		}
	}
	return strings.Contains(e.text, title)
}

func decimal(n int) string {
	digits := ""
	for ; n > 0; n /= 10 {
		digits = string(rune('0'+n%10)) + digits
	}
	return digits
}

// sameTitle reports whether the titles are equal, or equal without a subtitle.
func sameTitle(a, b string) bool {
	a, b = strings.Join(strings.Fields(a), " "), strings.Join(strings.Fields(b), " ")
	return a != "" && b != "" && (strings.Contains(a, b) || strings.Contains(b, a))
}

// mentioned reports whether a reply names an item of a list by its title or key.
func (e *evidence) mentioned(text string) bool {
	for _, l := range e.lists {
		for i := range l.Items {
			title, key := foldClaim(l.Items[i].Title), foldClaim(l.Items[i].Key)
			if head, _, ok := strings.Cut(title, ":"); ok {
				title = head
			}
			if utf8.RuneCountInString(title) > 1 && strings.Contains(text, title) || len(key) > 3 && strings.Contains(text, key) {
				return true
			}
		}
	}
	return false
}

// withheldClaims returns which messages to exclude because they claim a result without evidence while a list is shown. Imports, and
// replies in turns with tools, are never excluded.
func (w *Writer) withheldClaims(ctx context.Context, r *AppendRequest, withheld []Exclusion) []Exclusion {
	if w.Lists == nil || r.Import != nil || r.Settled {
		return withheld
	}
	var found []int
	for turn := range turnsOf(r.Messages) {
		for i := turn.start; i < turn.end && !turn.tools; i++ {
			if m := &r.Messages[i]; m.Role == memory.RoleAssistant && w.claims.candidate(m.Content) {
				found = append(found, i)
			}
		}
	}
	if len(found) == 0 {
		return withheld
	}
	lists, err := w.Lists(ctx, r.Scope, r.Audience)
	if err != nil || len(lists) == 0 {
		return withheld // without lists nothing is checked; unavailable storage refuses the messages anyway
	}
	e, newest := w.evidence(ctx, r)
	e.lists = lists
	first := firstReply(r.Messages)
	for _, i := range found {
		// A list put since the last message shows that a tool ran in this turn, even if the bot does not record tools.
		fresh := false
		for _, l := range lists {
			fresh = fresh || i == first && l.ShownAt.After(newest)
		}
		if fresh || !e.unsupported(r.Messages[i].Content) {
			continue
		}
		if withheld == nil {
			withheld = make([]Exclusion, len(r.Messages))
		}
		if withheld[i] == NotExcluded {
			withheld[i] = WithheldClaim
		}
	}
	return withheld
}

func firstReply(messages []memory.Message) int {
	for i := range messages {
		if messages[i].Role == memory.RoleAssistant {
			return i
		}
	}
	return -1
}

// evidenceMessages is the number of newest messages used as evidence.
const evidenceMessages = 200

// evidence returns the texts of people and tools in the session and in the request, and the arrival time of the session's newest
// message.
func (w *Writer) evidence(ctx context.Context, r *AppendRequest) (e *evidence, newest time.Time) {
	var text strings.Builder
	note := func(m *memory.Message, tools bool) {
		if m.Role != memory.RoleAssistant || tools {
			text.WriteString(m.Content)
			text.WriteByte('\n')
		}
		for _, call := range m.Tools {
			text.WriteString(call.Arguments + "\n" + call.Result + "\n")
		}
	}
	viewer := Viewer{Namespace: r.Scope.Namespace, UserID: r.Scope.UserID, Channel: r.Scope.Channel, Audience: r.Audience}
	id := r.Scope.SessionID
	if id == "" {
		id, _ = w.Store.Current(ctx, viewer) // without one there is no evidence
	}
	if id != "" {
		window, err := w.Store.Window(ctx, viewer, id, WindowQuery{Limit: evidenceMessages, Tools: true, System: true})
		if err == nil && len(window.Messages) > 0 {
			newest = window.Messages[len(window.Messages)-1].ReceivedAt
			earlier := make([]memory.Message, len(window.Messages))
			for i := range window.Messages {
				earlier[i] = window.Messages[i].Message
			}
			for turn := range turnsOf(earlier) {
				for i := turn.start; i < turn.end; i++ {
					note(&earlier[i], turn.tools)
				}
			}
		}
	}
	for turn := range turnsOf(r.Messages) {
		for i := turn.start; i < turn.end; i++ {
			note(&r.Messages[i], turn.tools)
		}
	}
	return &evidence{text: foldClaim(text.String())}, newest
}
