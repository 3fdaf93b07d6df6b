package redact

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/memsidecar/memsidecar/internal/lang/lazyregexp"
)

// Lengths of secrets, in bytes.
const (
	shortestPassword = 3
	shortestWord     = 4 // of a password that is a plain word
	shortestQuoted   = 2
	longestValue     = 320     // as far as a value is read to see whether it is a secret
	longestSecret    = 8 << 10 // and so far one goes that is
	longestPassword  = 128     // of several words
)

// closing are the ends of quotations by their beginnings.
var closing = map[rune]string{'"': `"`, '\'': `'`, '`': "`", '“': "”", '‘': "’", '「': "」", '『': "』", '【': "】", '„': "“", '«': "»", '《': "》", '”': "”"}

// value is what may be a secret.
type value struct {
	start, end int // without its quotation marks
	next       int // behind these
	quoted     bool
}

// whole is the value with what read left out because it is long.
func (v value) whole(text string) value {
	for v.end-v.start >= longestValue-8 && !v.quoted && v.end < len(text) && v.end-v.start < longestSecret && text[v.end] > ' ' && text[v.end] <= '~' &&
		strings.IndexByte("\"'`,;&", text[v.end]) < 0 {
		v.end++
	}
	v.next = max(v.next, v.end)
	return v
}

func (v value) of(text string) string { return text[v.start:v.end] }

// read reads the value that begins at a place: a quotation, or what has no blank in it. What a program would read next, such as
// "&key=", ends it; quotation marks inside of it do not.
func read(text string, start int) (value, bool) {
	if v, ok := readQuoted(text, start); ok {
		return v, true
	}
	end := start
	for end < len(text) && end-start < longestValue {
		r, size := utf8.DecodeRuneInString(text[end:])
		if r <= ' ' || r == 0x7F || r > '~' && !wordRune(r) {
			break
		}
		if end > start && ends(text[end:], r) || r == '[' && strings.HasPrefix(text[end:], beginEN) {
			break
		}
		end += size
	}
	for end > start {
		r, size := utf8.DecodeLastRuneInString(text[start:end])
		if !strings.ContainsRune(".,;:!?)]}'`\"\\>&", r) {
			break
		}
		end -= size
	}
	return value{start, end, end, false}, end > start
}

var parameter = lazyregexp.New(`^[,;&]\s{0,2}["']?[A-Za-z_][A-Za-z0-9_.\- ]{0,30}["']?[=:]`)

// ends reports whether a value without quotation marks ends before a rune: a mark that closes a quotation around it, the next
// parameter, or an element's end.
func ends(rest string, r rune) bool {
	switch r {
	case '"', '\'', '`':
		return closes(rest[1:])
	case ',', ';', '&':
		return parameter.MatchString(rest[:min(len(rest), 48)])
	case '<':
		return strings.HasPrefix(rest, "</")
	}
	return false
}

// closes reports whether what follows a quotation mark may follow the end of a quotation.
func closes(rest string) bool {
	rest = strings.TrimLeft(rest[:min(len(rest), 16)], "\"'`\\")
	next, _ := utf8.DecodeRuneInString(rest)
	return rest == "" || next <= ' ' || next > '~' && !wordRune(next) || strings.ContainsRune(`,:;}])>&.!?/|`, next)
}

// readQuoted reads a quotation. In JSON inside of JSON its marks have backslashes, as many as the one it began with.
func readQuoted(text string, start int) (value, bool) {
	slashes := 0
	for start+slashes < len(text) && text[start+slashes] == '\\' && slashes < 16 {
		slashes++
	}
	first, size := utf8.DecodeRuneInString(text[start+slashes:])
	mark, ok := closing[first]
	if !ok {
		return value{}, false
	}
	from := start + slashes + size
	for at := from; at < len(text) && at-from <= longestValue && text[at] != '\n' && text[at] != '\r'; at++ {
		if !strings.HasPrefix(text[at:], mark) {
			continue
		}
		before := 0
		for at-before > from && text[at-before-1] == '\\' && before < 16 {
			before++
		}
		whole := before == slashes || slashes == 0 && (before%2 == 0 || first != '"')
		if whole && (first > unicode.MaxASCII || closes(text[at+len(mark):])) {
			end := at
			if slashes > 0 {
				end -= slashes
			}
			return value{from, end, at + len(mark), true}, true
		}
	}
	return value{}, false
}

func hasDigit(text string) bool { return strings.ContainsFunc(text, unicode.IsDigit) }

// mixed reports whether a text has a digit and a letter, which no name or word of a language has.
func mixed(text string) bool { return hasDigit(text) && strings.ContainsFunc(text, unicode.IsLetter) }

// allDigits reports whether a text has digits only.
func allDigits(text string) bool {
	return text != "" && !strings.ContainsFunc(text, func(r rune) bool { return r < '0' || r > '9' })
}

// opaque reports whether a text is neither a word of a language nor a name in a program: it has digits and letters, or changes between
// upper and lower case unlike a name, or is a long run of capitals.
func opaque(text string) bool {
	if mixed(text) {
		return true
	}
	upper, lower, changes, runs, run := 0, 0, 0, 0, 0
	for i := range len(text) {
		switch c := text[i]; {
		case c >= 'A' && c <= 'Z':
			upper++
			if run++; run == 2 && i > 1 {
				runs++
			}
			if i > 0 && text[i-1] >= 'a' && text[i-1] <= 'z' {
				changes++
			}
		case c >= 'a' && c <= 'z':
			lower++
			run = 0
		default:
			run = 0
		}
	}
	if lower == 0 {
		return upper >= 16 && !strings.ContainsAny(text, "_-. ")
	}
	return upper > 0 && len(text) >= 10 && (changes*5 >= len(text) || runs > 0 && changes > 1)
}

// isWord reports whether a text may be a word of a sentence: letters of one case, but for the first.
func isWord(text string) bool {
	_, first := utf8.DecodeRuneInString(text)
	if strings.ToUpper(text) == text && len(text) > 4 {
		first = len(text)
		if strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsUpper(r) && r != '-' && r != '\'' }) {
			return false
		}
	}
	return !strings.ContainsFunc(text[first:], func(r rune) bool {
		return (!unicode.IsLower(r) || !wordRune(r)) && r != '-' && r != '\'' && r != '’'
	})
}

var (
	// "12-character", "8 chars", "5分钟".
	measure = lazyregexp.New(`(?i)^[0-9]+(?:\s?[-–]\s?[0-9]+)?[- ]?(?:char|digit|letter|bit|byte|word|number|symbol|second|minute|` +
		`hour|day|week|month|year|time|attempt|percent|people|` +
		`dollar|euro|yuan|yen|zeichen|stellen|stellig|minuten|stunden|mal\b|caract|chiffre|fois|jours|heures|dígit|digito|cifras|veces|` +
		`años|días|minutos|` +
		`位|次|个|個|天|年|月|日|号|點|点|分|秒|小时|小時|时|時|块|元|岁|歲|条|遍|字|人|桁|文字|回|歳|円|つ)`)
	// $PASSWORD, ${x}, <password>, %s, ****, os.environ[…], getpass().
	variable = lazyregexp.New(`^(?:\$[A-Z_]+$|\$[a-z_]+$|\$[{(]|<[^>]*>?$|%[a-zA-Z]$|\{\{?|[*•.xX_-]+$|https?://|[A-Za-z_][A-Za-z0-9_.]*[(\[])`)
	// Dates, times, amounts, addresses, files, versions: what has a digit, and is no secret in the middle of a sentence.
	ordinary = lazyregexp.New(`(?i)^(?:[^@\s]+@[\w-]+\.[\w.-]+|(?:https?://|www\.).*|[0-9]+(?:st|nd|rd|th|er|re|e|º|ª)|[$€£¥#][0-9.,]+[kmb]?|` +
		`[0-9.,]+(?:am|pm|h|min|s|ms|kg|g|km|m|cm|mm|l|ml|gb|mb|kb|tb|k|x|%|°c?|px|v|w|hz|mhz|ghz|mbps|usd|eur|€|\$|p|d|mah)|[0-9]{1,` +
		`4}[-/.][0-9]{1,2}(?:[-/.][0-9]{1,4})?|` +
		`[0-9]{1,2}[:h][0-9]{2}(?::[0-9]{2})?(?:am|pm)?|v?[0-9]+(?:\.[0-9]+)+|[\w.-]+\.[a-z]{2,4}[0-9]?|[0-9]{1,3}(?:,[0-9]{3})+|` +
		`[0-9]+-[a-z]+(?:-[a-z]+)*|` +
		`iphone[0-9]*|ipad[0-9]*|windows[0-9]+|win[0-9]+|ps[0-9]|gpt-?[0-9].*|wpa[23].*|sha-?[0-9]+|md[45]|base(?:32|58|64)|utf-?(?:8|16)|` +
		`oauth[12]?|auth0|1password|office365|` +
		`web[23]|mp[34]|h26[45]|ipv[46]|log4j|k8s|i18n|s3|ec2|2fa|bip-?39|ed25519|rsa-?[0-9]+|aes-?[0-9]+|[45]g|b2b|covid-?19)$`)
)

// placeholder reports whether something stands where a password would.
func placeholder(said string) bool {
	return variable.MatchString(said) || markers.MatchString(said) || strings.HasPrefix(said, "[redacted") || strings.HasPrefix(said, "[已隐去")
}
