package redact

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Passwords have no shape of their own: words announce them. What follows the words may as well be a remark about a
// password, such as "is wrong", so a plain word is one only where little else is possible.
var (
	// "my password for the router is", "PIN:", "pwd=", "passwd: ".
	announcedEN = regexp.MustCompile(`(?i)\b(?:[a-z0-9]+[_-])*(?:pass ?words?|passwd|pwd|pass ?phrase|pass ?code|pin(?: ?code| number)?)["'”]?(?:\s+(?:for|of|to|on)(?:\s+[^\s:=,.;!?]+){1,5}?)?(\s*(?:\bis\b|\bwas\b|=>|->|=|:|：|\bchanged to\b|\bset to\b|是)\s*(?:(?:now|actually|still|just|simply|also)\s+)?)`)
	// "WiFi密码是", "密码：", "口令改成了".
	announcedZH = regexp.MustCompile(`(?:密码|密碼|口令)["'”]?((?:\s*(?:是|为|為|就是|叫|：|:|=|＝|改成了?|改为了?|换成了?|设成了?|设为了?|设置为|is\b))+\s*)`)
	// "user bob password hunter2": only what cannot be a word.
	announcedBarely = regexp.MustCompile(`(?i)(?:\bpass ?word|\bpasswd|密码|密碼)[ \t]+`)
	inURL           = regexp.MustCompile(`://[^\s/:@?#]{1,64}:([^\s/@?#]{3,128})@`)
)

// passwordWords are those of which the patterns have one.
var passwordWords = []string{"pass", "pwd", "pin", "密", "口令"}

func passwords(text string) (found []span) {
	add := func(start int, assigned, barely bool) {
		if s, ok := value(text, start, assigned, barely); ok {
			found = append(found, s)
		}
	}
	if strings.Contains(text, "://") {
		for _, at := range inURL.FindAllStringSubmatchIndex(text, -1) {
			found = append(found, span{at[2], at[3], Password})
		}
	}
	if !containsAny(strings.ToLower(text), passwordWords) {
		return found
	}
	for _, at := range announcedEN.FindAllStringSubmatchIndex(text, -1) {
		add(at[1], strings.ContainsAny(text[at[2]:at[3]], ":=：>"), false)
	}
	for _, at := range announcedZH.FindAllStringSubmatchIndex(text, -1) {
		add(at[1], true, false)
	}
	for _, at := range announcedBarely.FindAllStringIndex(text, -1) {
		add(at[1], false, true)
	}
	return found
}

// Of a password, in bytes.
const (
	shortestPassword = 4
	longestPassword  = 128
)

// closing are the ends of quotations by their beginnings.
var closing = map[rune]string{'"': `"`, '\'': `'`, '`': "`", '“': "”", '‘': "’", '「': "」", '『': "』", '【': "】"}

// value reads the password that begins at a place, if one does. assigned: what is before it leaves no room for a sentence.
// barely: hardly anything says that it is one.
func value(text string, start int, assigned, barely bool) (span, bool) {
	rest := strings.TrimPrefix(text[start:], `\`) // a quotation in encoded JSON
	start = len(text) - len(rest)
	first, size := utf8.DecodeRuneInString(rest)
	if end, ok := closing[first]; ok {
		start, rest = start+size, rest[size:]
		n := strings.Index(rest, end)
		if n < shortestPassword || n > longestPassword || strings.ContainsAny(rest[:n], "\r\n") {
			return span{}, false
		}
		said := strings.TrimSuffix(rest[:n], `\`)
		return span{start, start + len(said), Password}, !barely && !placeholder(said)
	}
	n := strings.IndexFunc(rest, func(r rune) bool { return r <= ' ' || r > '~' || r == '"' || r == '\\' })
	if n < 0 {
		n = len(rest)
	}
	said := strings.TrimRight(rest[:n], ".,;:!?)]}'`")
	s := span{start, start + len(said), Password}
	if len(said) < shortestPassword || len(said) > longestPassword || placeholder(said) {
		return span{}, false
	}
	if !isWord(said) {
		return s, !barely || mixed(said) && len(said) >= 6
	}
	// A word, such as "swordfish" or "wrong".
	ends := strings.TrimLeft(rest[len(said):], " \t")
	final := ends == "" || !unicode.IsLetter(firstOf(ends)) || firstOf(ends) > unicode.MaxASCII ||
		strings.HasPrefix(ends, "and ") || strings.HasPrefix(ends, "but ")
	return s, !barely && (assigned || final && !strings.ContainsAny(said, "-'")) && !remarks[strings.ToLower(said)]
}

func firstOf(text string) rune {
	r, _ := utf8.DecodeRuneInString(text)
	return r
}

// isWord reports whether a text may be a word of a sentence: letters of one case, but for the first.
func isWord(text string) bool {
	return !strings.ContainsFunc(text[1:], func(r rune) bool { return (r < 'a' || r > 'z') && r != '-' && r != '\'' })
}

var (
	// "12-character", "8chars".
	measure = regexp.MustCompile(`(?i)^[0-9]+[- ]?(?:char|digit|letter|bit|byte|word|number|symbol|day|month|year)`)
	// $PASSWORD, ${x}, <password>, %s, ****, os.environ[…], getpass().
	variable = regexp.MustCompile(`^(?:\$[A-Za-z_{(]|<[^>]*>$|%[a-zA-Z]$|\{\{?|[*•.xX_-]+$|https?://|[A-Za-z_][A-Za-z0-9_.]*[(\[])`)
)

// placeholder reports whether something stands where a password would.
func placeholder(said string) bool {
	return measure.MatchString(said) || variable.MatchString(said) || markers.MatchString(said) || strings.HasPrefix(said, "[redacted")
}

// remarks are words that follow "password is" and are none.
var remarks = words(`a about accepted again all allowed already also always an and any asked at because been being both
	bad blank broken case changed changing char complex compromised confidential considered correct created currently default different
	disabled done easy empty encrypted enough essential exactly exposed expired expiring false fine for forgotten from generated good
	gone gibberish hard hashed her here hidden his how important impossible in incorrect insecure inside invalid it its known leaked long longer
	lost mandatory missing mine my needed never new nil no none not nothing null obvious often ok okay old on only optional our out password
	passwords pending plain predictable private protected random really refused rejected required reset right safe same saved
	secret secure sent set shared short simple so some something still stored str string strong stuff text that the their there this
	too true txt undefined under unique unknown unsafe unsecured used useless valid varchar very weak what when where which why with without
	working written wrong your yours wifi admins`)

func words(list string) map[string]bool {
	set := map[string]bool{}
	for word := range strings.FieldsSeq(list) {
		set[word] = true
	}
	return set
}
