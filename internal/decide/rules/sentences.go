package rules

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/memsidecar/memsidecar/internal/lang"
	"github.com/memsidecar/memsidecar/internal/lang/lazyregexp"
)

// source is one message, prepared for matching.
type source struct {
	index int    // position in the dialogue
	group bool   // said among people, not to the assistant alone
	raw   string // verbatim, valid UTF-8
	norm  string // normalized; inside of quotations and titles masked; as long as raw
}

// piece is a part of a message: raw and norm are the same bytes of both.
type piece struct {
	src        *source
	start, end int // byte positions in the message
	raw, norm  string
	words      []word // positions within the piece
}

func newSource(index int, content string) *source {
	raw := strings.ToValidUTF8(content, "\uFFFD")
	return &source{index: index, raw: raw, norm: maskTitles(raw, maskQuotes(normalize(raw)))}
}

func (s *source) piece(start, end int) piece {
	for start < end {
		r, n := utf8.DecodeRuneInString(s.raw[start:end])
		if !unicode.IsSpace(r) {
			break
		}
		start += n
	}
	for start < end {
		r, n := utf8.DecodeLastRuneInString(s.raw[start:end])
		if !unicode.IsSpace(r) {
			break
		}
		end -= n
	}
	norm := s.norm[start:end]
	return piece{src: s, start: start, end: end, raw: s.raw[start:end], norm: norm, words: wordsOf(norm)}
}

// from is the rest of a piece, without the punctuation that it begins with.
func (p piece) from(at int) piece {
	rest := p.norm[at:]
	trimmed := strings.TrimLeftFunc(rest, func(r rune) bool {
		return unicode.IsSpace(r) || strings.ContainsRune(",，、:：;；.。!！~～—-…", r)
	})
	return p.src.piece(p.start+at+len(rest)-len(trimmed), p.end)
}

func (p piece) empty() bool { return strings.TrimFunc(p.norm, notWord) == "" }

// has reports whether one of the substrings, simplified Chinese, is in the piece.
func (p piece) has(subs ...string) bool {
	return slices.ContainsFunc(subs, func(s string) bool { return strings.Contains(p.norm, s) })
}

// word is the i-th word, or "".
func (p piece) word(i int) string {
	if i < len(p.words) {
		return p.words[i].norm
	}
	return ""
}

// open is the piece as its words, one space between them, contractions opened: "I'd like" is "i would like".
func (p piece) open() string {
	var b strings.Builder
	for i, w := range p.words {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(w.norm)
	}
	return b.String()
}

// hasWord reports whether one of the words, lower case, is in the piece.
func (p piece) hasWord(words ...string) bool {
	return slices.ContainsFunc(p.words, func(w word) bool { return slices.Contains(words, w.norm) })
}

func (p piece) runes() int { return utf8.RuneCountInString(p.raw) }

// maxQuoteBytes is how far the end of a quotation is looked for.
const maxQuoteBytes = 600

// maskQuotes replaces what stands between quotation or title marks, so that a film's title or another's words are not
// taken for the speaker's own. An opening mark without its closing one on the same line masks nothing.
func maskQuotes(norm string) string {
	closing := map[rune]string{'“': "”", '「': "」", '『': "』", '《': "》", '"': "\"", '‘': "’"}
	var b strings.Builder
	b.Grow(len(norm))
	for i := 0; i < len(norm); {
		r, n := utf8.DecodeRuneInString(norm[i:])
		b.WriteString(norm[i : i+n])
		i += n
		end, opens := closing[r]
		if !opens {
			continue
		}
		window := norm[i:min(len(norm), i+maxQuoteBytes)]
		if nl := strings.IndexByte(window, '\n'); nl >= 0 {
			window = window[:nl]
		}
		if at := strings.Index(window, end); at > 0 {
			b.WriteString(strings.Repeat(string(masked), at))
			b.WriteString(end)
			i += at + len(end)
		}
	}
	return b.String()
}

var singleQuoted = lazyregexp.New(`(?:^|[\s(])'([A-Z0-9][^'\n]+(?:'[a-z][^'\n]*){0,3})'(?:$|[\s.,;:!?)])`)

// maskTitles masks what stands between straight single quotes and begins with a capital: 'The Old Man and the Sea'.
func maskTitles(raw, norm string) string {
	if !strings.Contains(raw, "'") {
		return norm
	}
	out := []byte(norm)
	for _, at := range singleQuoted.FindAllStringSubmatchIndex(raw, -1) {
		for i := at[2]; i < at[3]; i++ {
			out[i] = masked
		}
	}
	return string(out)
}

// sentence is a sentence of prose and how it ends.
type sentence struct {
	piece
	question bool // ends with a question mark
	colon    bool // ends with a colon: what follows belongs to it
}

// maxSentenceBytes bounds what is looked at together: work inside a sentence may grow faster than its length. It is far
// more than a statement may have.
const maxSentenceBytes = 4000

// sentences cuts the prose of a message into sentences. Code, logs and quoted lines are left out.
func (s *source) sentences() []sentence {
	var out []sentence
	fenced := false
	for pos := 0; pos < len(s.raw); {
		end := len(s.raw)
		if nl := strings.IndexByte(s.raw[pos:], '\n'); nl >= 0 {
			end = pos + nl
		}
		line := strings.TrimSpace(s.raw[pos:end])
		switch {
		case strings.HasPrefix(line, "```") || strings.HasPrefix(line, "~~~"):
			if strings.Count(line, "```") != 2 { // not opened and closed on one line
				fenced = !fenced
			}
		case fenced, line == "", notProse(line):
		default:
			out = s.lineSentences(out, pos, end)
		}
		pos = end + 1
	}
	return out
}

func (s *source) lineSentences(out []sentence, pos, end int) []sentence {
	broken := false // the text before was cut in the middle of a clause: the rest of it is no sentence
	emit := func(from, to int, question bool) {
		if broken {
			broken = false
			return
		}
		if p := s.piece(from, to); !p.empty() {
			out = append(out, sentence{p, question, strings.HasSuffix(p.norm, ":") || strings.HasSuffix(p.norm, "：")})
		}
	}
	from := pos + listMarker(s.raw[pos:end])
	for i := from; i < end; {
		r, n := utf8.DecodeRuneInString(s.norm[i:])
		i += n
		if length := i - from; length > maxSentenceBytes || length > maxSentenceBytes*3/4 && strings.ContainsRune(",，、 ", r) {
			emit(from, i, false)
			broken = length > maxSentenceBytes
			from = i
			continue
		}
		if !strings.ContainsRune("。！？!?；;…", r) && (r != '.' || !s.fullStop(i-n, end)) {
			continue
		}
		question := r == '?' || r == '？'
		for i < end { // "?!", "...", "。”"
			r, n = utf8.DecodeRuneInString(s.norm[i:])
			if !strings.ContainsRune("。！？!?；;….”」』", r) {
				break
			}
			question = question || r == '?' || r == '？'
			i += n
		}
		emit(from, i, question)
		from = i
	}
	emit(from, end, false)
	return out
}

// listMarker is the length of "- ", "* ", "1. " or "(2) " at the beginning of a line.
func listMarker(line string) int {
	trimmed := strings.TrimLeft(line, " \t")
	lead := len(line) - len(trimmed)
	rest := strings.TrimLeft(trimmed, "(（0123456789")
	digits := len(trimmed) - len(rest)
	for _, mark := range []string{"- ", "* ", "• ", "· "} {
		if digits == 0 && strings.HasPrefix(rest, mark) {
			return lead + len(mark)
		}
	}
	for _, mark := range []string{". ", "、", ") ", "）"} {
		if digits > 0 && digits < 5 && strings.HasPrefix(rest, mark) {
			return lead + digits + len(mark)
		}
	}
	return 0
}

var abbreviations = lang.Set("mr mrs ms dr prof st vs etc e.g i.e a.m p.m u.s u.k no approx jan feb mar apr jun jul aug sep sept oct nov " +
	"dec mt inc ltd jr sr")

var (
	initials = lazyregexp.New(`^[("']*\p{Lu}(\.\p{Lu})+$`)
	places   = lang.Set("l.a d.c n.y n.z u.n e.u s.f p.s")
	surname  = lazyregexp.New(`^ \p{Lu}\p{Ll}+`)
)

// fullStop reports whether the dot at a position ends a sentence.
func (s *source) fullStop(at, end int) bool {
	if at+1 < end && !strings.ContainsRune(" \t\r\"'”)", rune(s.norm[at+1])) {
		next, _ := utf8.DecodeRuneInString(s.norm[at+1:])
		before, _ := utf8.DecodeLastRuneInString(s.norm[:at])
		return cjk(next) && cjk(before)
	}
	begin := at
	for begin > 0 && at-begin < 8 && s.norm[begin-1] != ' ' && s.norm[begin-1] < 0x80 {
		begin--
	}
	last := strings.Trim(s.norm[begin:at], "(\"'")
	if initials.MatchString(s.raw[begin:at]) && !abbreviations[last] && !places[last] && surname.MatchString(s.raw[at+1:end]) {
		return false // J.J. Abrams
	}
	if !abbreviations[last] && (len(last) != 1 || last == "i" || last[0] < 'a' || last[0] > 'z') {
		return true
	}
	// "at 4 p.m. It was" ends; "at 4 p.m. on Friday" does not.
	rest := strings.TrimLeft(s.raw[min(at+1, end):end], " ")
	return rest == "" || last != "dr" && last != "mr" && last != "mrs" && last != "ms" && len(last) > 1 && rest[0] >= 'A' &&
		rest[0] <= 'Z' && strings.Contains(last, ".")
}

var datedLog = lazyregexp.New(`^\[?[0-9]{2,4}[-/][0-9]{2}[-/][0-9]{2,4}[T ][0-9:.,+Z-]+\]? *[\[(|]?(ERROR|WARN|WARNING|INFO|DEBUG|` +
	`FATAL|TRACE|error|warn|info|debug)\b`)

var codeStarts = []string{
	"func ", "def ", "class ", "import ", "from ", "#include", "public ", "private ", "const ", "let ", "var ", "return ", "package ",
	"select ", "insert ", "if (", "for (", "while (", "else", "try", "catch", "print(", "console.", "$ ", "# ", "<?", "<!", "//", "/*", "at ", "file \"",
}

var logWords = []string{
	"traceback (most recent", "exception:", "exception in", " error:", "error ", "[error", "[info", "[warn", "[debug",
	" info ", " warn ", " debug ", "stack trace:", "fatal:", "panic:", "goroutine ", "segmentation fault",
}

// notProse reports whether a line is code, a log, or a quotation of an earlier message.
func notProse(line string) bool {
	if line[0] == '>' || strings.HasPrefix(line, "＞") {
		return true
	}
	head := line[:min(len(line), 2000)] // the beginning of a long line tells
	lower := strings.ToLower(head)
	symbols, total, han := 0, 0, 0
	for _, r := range head {
		total++
		switch {
		case strings.ContainsRune("{}[]=<>;|\\&$", r):
			symbols++
		case cjk(r):
			han++
		}
	}
	dense := total > 6 && symbols*100 > total*8
	if logged(line, head, lower) {
		return true
	}
	if han*5 > total {
		return total > 6 && symbols*100 > total*20
	}
	if dense {
		return true
	}
	for _, start := range codeStarts {
		if strings.HasPrefix(lower, start) &&
			(symbols > 0 || strings.ContainsAny(lower, "(_") && strings.HasSuffix(lower, ")") || strings.HasPrefix(start, "#inc")) {
			return true
		}
	}
	return false
}

// logged reports whether a line is a program's log or stack trace.
func logged(line, head, lower string) bool {
	for _, level := range []string{"ERROR", "WARN", "WARNING", "INFO", "DEBUG", "FATAL", "TRACE"} {
		if rest, ok := strings.CutPrefix(line, level); ok && rest != "" && strings.ContainsRune(" :]|\t", rune(rest[0])) &&
			strings.ContainsAny(rest, "0123456789:") {
			return true
		}
	}
	if datedLog.MatchString(head) {
		return true
	}
	dated := len(lower) > 16 && lower[0] >= '0' && lower[0] <= '9' && strings.Count(lower[:16], "-")+strings.Count(lower[:16], "/") == 2 &&
		strings.Contains(lower[:16], ":")
	for _, w := range logWords {
		if at := strings.Index(lower, w); at >= 0 && (dated || at < 3 && w[0] != ' ' && w != "error " || strings.HasPrefix(w, "traceback")) {
			return true
		}
	}
	return false
}

// clauses cuts a sentence at its commas, at spaces between Chinese characters, and before a question that "and", "but" or
// "so" ties on. Whether the parts stand on their own is decided later.
func (s sentence) clauses() []piece {
	var cuts []int
	runes := 0
	var before rune
	for i, r := range s.norm {
		runes++
		switch {
		case r == '，' || r == '～' || r == '~':
			cuts = append(cuts, i+utf8.RuneLen(r))
		case r == ',':
			if digit(before) && i+1 < len(s.norm) && digit(rune(s.norm[i+1])) { // 1,000
				break
			}
			cuts = append(cuts, i+1)
		case r == ' ' || r == '　':
			next, _ := utf8.DecodeRuneInString(s.norm[i+utf8.RuneLen(r):])
			if cjk(before) && cjk(next) {
				cuts = append(cuts, i+utf8.RuneLen(r))
			}
		case r == '—' && before == '—':
			cuts = append(cuts, i+utf8.RuneLen(r))
		}
		before = r
	}
	cuts = append(cuts, s.questionCuts()...)
	cuts = append(cuts, s.ownCuts()...)
	slices.Sort(cuts)
	var out []piece
	from := 0
	for _, cut := range append(cuts, len(s.norm)) {
		if p := s.src.piece(s.start+from, s.start+cut); !p.empty() {
			out = append(out, p)
			from = cut
		}
	}
	return out
}

// questionHeadZH is what a Chinese question may begin with before its question words.
var questionHeadZH = lazyregexp.New(`(那|请问|不知道|你|您|我|有没|觉得|认为|说|到底|应该|应|该|还|有)+$`)

// interrogative words begin a question, or a clause that depends on the one before: "I think of her and how I miss her".
var interrogative = lang.Set("what where when why how who which whose")

// questionCuts are the places before a question that is tied on without a comma.
func (s sentence) questionCuts() []int {
	var cuts []int
	for i := 1; i+1 < len(s.words); i++ {
		if w := s.words[i].norm; (w == "and" || w == "but" || w == "so") && questionStart(s.words[i+1:]) &&
			(s.question || !interrogative[s.words[i+1].norm]) {
			cuts = append(cuts, s.words[i].start)
		}
	}
	for _, tie := range []string{"怎么办", "该怎么", "应该怎么", "该如何", "有什么推荐", "有什么建议", "有什么办法", "有没有推荐", "有没有什么", "能推荐", "可以推荐"} {
		if at := strings.Index(s.norm, tie); at > 0 && (s.question || tie == "怎么办") {
			at -= len(questionHeadZH.FindString(s.norm[:at])) // "你有什么推荐" stays whole
			cuts = append(cuts, at)
		}
	}
	return cuts
}

func digit(r rune) bool { return r >= '0' && r <= '9' }

// questionStart reports whether English words begin a question or a request to the bot.
func questionStart(words []word) bool {
	if len(words) < 2 {
		return false
	}
	a, b := words[0].norm, words[1].norm
	switch a {
	case "what", "where", "when", "why", "how", "who", "which", "whose":
		return !set1(b, "i", "my", "we")
	case "can", "could", "would", "will", "should", "do", "does", "did", "is", "are", "have", "has", "may", "shall", "am", "was", "were":
		return set1(b, "i", "you", "we", "it", "they", "he", "she", "there", "this", "that", "these", "anyone", "anybody", "the", "my", "someone", "your")
	case "any":
		return true
	case "i":
		return set1(b, "wonder", "wondered") || (b == "am" || b == "was") && len(words) > 2 && set1(words[2].norm, "wondering", "just", "curious")
	}
	return false
}

func set1(s string, options ...string) bool { return slices.Contains(options, s) }
