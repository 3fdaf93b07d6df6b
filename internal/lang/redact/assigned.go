package redact

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/memsidecar/memsidecar/internal/lang"
	"github.com/memsidecar/memsidecar/internal/lang/lazyregexp"
)

// How settings, code, URLs and headers name secrets: by the last words of a name, such as NAME_API_KEY, dbPassword, x-api-key.
var (
	passwordKeys = lang.Set(`password passwords passwd passphrase passcode passwort kennwort contrasena contraseña mdp pwd pass pw userpass`)
	codeKeys     = lang.Set(`pin cvv cvv2 cvc cvc2 otp pincode`)
	secretKeys   = lang.Set(`token secret apikey accesskey secretkey privatekey accountkey authkey signingkey encryptionkey masterkey sharedkey
		licensekey appkey appsecret clientsecret accesstoken authtoken apitoken refreshtoken bottoken secretaccesskey sharedaccesskey`)
	// These are secrets only when they are long and random.
	vagueKeys = lang.Set(`key sig signature auth authorization session sid sessionid sessid cookie jwt pat bearer credential credentials hash
		ticket csrf xsrf webhook dsn api`)
	// A key of these is a secret.
	ofKeys = lang.Set(`api access secret private account auth encryption signing master shared license licence service subscription storage app
		application client deploy ssh admin consumer webhook session rest sas hmac aes rsa crypto wallet bot integration write read server
		apps maps`)
	// So end the names that are written without signs between their words.
	passwordEnds = []string{"password", "passwd", "passphrase", "pwd", "passwort"}
	secretEnds   = []string{
		"token", "secret", "apikey", "accesskey", "secretkey", "privatekey", "accountkey", "authkey", "signingkey",
		"encryptionkey", "masterkey", "sharedkey", "licensekey",
	}
	vagueEnds = []string{"sessid", "sessionid", "signature"}
)

// naming is what the name of a setting says of its value.
type naming struct {
	class class
	whole bool // the name is of more words than one, so it is no word of a sentence
}

// classOf says what a name such as "MY_DB_PASSWORD" is of.
func classOf(name string) naming {
	list := splitName(name)
	if len(list) == 0 {
		return naming{}
	}
	last, before := list[len(list)-1], ""
	if len(list) > 1 {
		before = list[len(list)-2]
	}
	found := naming{whole: len(list) > 1 || strings.ToUpper(name) == name}
	ends := func(list []string) bool {
		for _, end := range list {
			if strings.HasSuffix(last, end) {
				return true
			}
		}
		return false
	}
	switch {
	case passwordKeys[last] || ends(passwordEnds):
		found.class = passwordName
		if (last == "pass" || last == "pw") && !found.whole {
			found.class = barelyName
		}
	case codeKeys[last], last == "code" && (before == "pin" || before == "security"):
		found.class = codeName
	case secretKeys[last] || ends(secretEnds) || last == "key" && ofKeys[before]:
		found.class = keyName
		if strings.HasPrefix(before, "private") || strings.HasPrefix(last, "private") {
			found.class = privateName
		}
	case vagueKeys[last] || ends(vagueEnds):
		found.class = weakKeyName
	}
	return found
}

// splitName splits a name into its words, at signs and where capitals begin, in small letters and without digits behind.
func splitName(name string) []string {
	var list []string
	start := 0
	cut := func(end int) {
		if word := strings.ToLower(strings.TrimRight(name[start:end], "0123456789")); word != "" {
			list = append(list, word)
		}
	}
	for i := range len(name) {
		c := name[i]
		switch {
		case c == '_' || c == '-' || c == '.' || c == '$' || c == '@' || c == ' ':
			cut(i)
			start = i + 1
		case upperByte(c) && i > start && (!upperByte(name[i-1]) || i+1 < len(name) && isLetterByte(name[i+1])):
			cut(i)
			start = i
		}
	}
	cut(len(name))
	return list
}

// lastLetters are those with which a name of a secret may end: what rules most of them out in no time.
const lastLetters = "deyntswpcvghrifaDEYNTSWPCVGHRIFA"

// separator is the length of the sign between a name and its value at a position, or 0.
func separator(text string, at int) int {
	switch text[at] {
	case '=', ':':
		return 1
	case '(':
		if at+1 < len(text) && (text[at+1] == '"' || text[at+1] == '\'') {
			return 1
		}
	case "：＝"[0]:
		if strings.HasPrefix(text[at:], "：") || strings.HasPrefix(text[at:], "＝") {
			return len("：")
		}
	}
	return 0
}

// assignments returns the secrets that settings, code, URLs and headers hold.
func assignments(text string) (found []span) {
	for i := 0; i < len(text); i++ {
		size := separator(text, i)
		if size == 0 {
			continue
		}
		name, tight := nameBefore(text, i)
		if name == "" {
			continue
		}
		as := classOf(name)
		if as.class == none || as.class == barelyName && text[i] != '=' {
			continue
		}
		at := i + size
		for at < len(text) && strings.IndexByte("=>:", text[at]) >= 0 && at-i < 3 {
			at++
		}
		blanks := at
		at = skipBlanks(text, at)
		tight = tight && at == blanks && text[i] == '='
		if at < len(text) && text[at] == '[' {
			found = append(found, listOf(text, at, as, tight)...)
			continue
		}
		at = scheme(text, at)
		if v, ok := read(text, at); ok && holds(text, v, as, tight) {
			v = v.whole(text)
			found = append(found, span{start: v.start, end: v.end, kind: kinds[as.class]})
			i = max(i, v.end-1)
		}
	}
	return found
}

// listOf returns the secrets of a list of quotations.
func listOf(text string, at int, as naming, tight bool) (found []span) {
	for range 64 {
		v, ok := readQuoted(text, skipBlanks(text, at+1))
		if !ok || !holds(text, v, as, tight) {
			break
		}
		found = append(found, span{start: v.start, end: v.end, kind: kinds[as.class]})
		if at = skipBlanks(text, v.next); at >= len(text) || text[at] != ',' {
			break
		}
	}
	return found
}

// nameBefore reads the name that ends before a place. tight: nothing stands between.
func nameBefore(text string, end int) (name string, tight bool) {
	at := end
	for at > 0 && end-at < 24 && strings.IndexByte(" \t\"'`)]\\:*", text[at-1]) >= 0 {
		at--
	}
	tight = at == end
	if at == 0 || strings.IndexByte(lastLetters, text[at-1]) < 0 && (text[at-1] < '0' || text[at-1] > '9') {
		return "", false
	}
	start := at
	for start > 0 && at-start < 80 {
		c := text[start-1]
		if c >= utf8.RuneSelf || !wordRune(rune(c)) && c != '-' && c != '.' && c != '$' {
			break
		}
		start--
	}
	if start == at {
		return "", false
	}
	name = strings.TrimLeft(text[start:at], "-.$")
	if strings.EqualFold(name, "key") && start > 1 && text[start-1] == ' ' { // "API key: "
		word := start - 1
		for word > 0 && wordRune(rune(text[word-1])) && text[word-1] < utf8.RuneSelf {
			word--
		}
		name = text[word:at]
	}
	return name, tight
}

var schemes = lazyregexp.New(`(?i)^(?:bearer|basic|token|digest|apikey|api-key)\s+`)

// scheme is behind "Bearer" and the like.
func scheme(text string, at int) int {
	if end := schemes.FindStringIndex(text[at:min(len(text), at+24)]); end != nil {
		return at + end[1]
	}
	return at
}

// holds reports whether the value of a setting is a secret.
func holds(text string, v value, as naming, tight bool) bool {
	said := v.of(text)
	if placeholder(said) || measure.MatchString(text[v.start:min(len(text), v.end+12)]) && !tight {
		return false
	}
	length := utf8.RuneCountInString(said)
	switch as.class {
	case passwordName:
		switch {
		case length < shortestQuoted || !v.quoted && length < shortestPassword || remarks[strings.ToLower(said)]:
			return false
		case strings.Contains(said, " "):
			first, _, _ := strings.Cut(strings.ToLower(said), " ")
			return length <= longestPassword && !remarks[first]
		case isWord(said):
			return length >= shortestWord || v.quoted || tight
		}
		return true
	case barelyName:
		return length >= 4 && mixed(said)
	case codeName:
		return length >= 3 && length <= 10 && isCode(said)
	case keyName, privateName:
		return length >= 8 && opaque(said) && !strings.Contains(said, "://") ||
			length >= 12 && (as.whole && tight || v.quoted && as.whole) && !isWord(said) && !strings.ContainsAny(said, " ./:_")
	default:
		return length >= 16 && opaque(said) && !strings.ContainsAny(said, " ") && !strings.Contains(said, "://")
	}
}

var (
	flag    = lazyregexp.New(`(?:^|[\s'"])--?([A-Za-z][A-Za-z0-9_.-]{1,40})[ \t]+`)
	element = lazyregexp.New(`<([A-Za-z_][\w.:-]{1,60})(?:\s[^<>]{0,200})?>([^<>]{2,200})</`)
	// <add key="SmtpPassword" value="…">, "name": "DB_PASSWORD", "value": "…".
	pair = lazyregexp.New(`(?i)["']?\b(?:key|name|id)["']?\s*[=:]\s*["']([\w.:-]{2,60})["'][\s,]+["']?(?:value|` +
		`content)["']?\s*[=:]\s*["']([^"'\r\n]{2,200})["']`)
)

// structures returns the secrets of command lines, XML, and pairs of a name and a value.
func structures(text string) (found []span) {
	keep := func(name string, v value, tight bool) {
		if as := classOf(name); as.class != none && holds(text, v, as, tight) {
			found = append(found, span{start: v.start, end: v.end, kind: kinds[as.class]})
		}
	}
	if strings.Contains(text, " -") || strings.HasPrefix(text, "-") {
		for _, at := range flag.FindAllStringSubmatchIndex(text, -1) {
			if v, ok := read(text, at[1]); ok && (v.quoted || text[v.start] != '-') {
				keep(text[at[2]:at[3]], v, true)
			}
		}
	}
	if strings.Contains(text, "</") {
		for _, at := range element.FindAllStringSubmatchIndex(text, -1) {
			keep(text[at[2]:at[3]], value{at[4], at[5], at[5], true}, true)
		}
	}
	if strings.Contains(text, "alue") {
		for _, at := range pair.FindAllStringSubmatchIndex(text, -1) {
			keep(text[at[2]:at[3]], value{at[4], at[5], at[5], true}, true)
		}
	}
	return found
}

var (
	authority = lazyregexp.New(`://([^\s"'<>` + "`" + `]{1,300})`)
	hostName  = lazyregexp.New(`^(?:[A-Za-z0-9.-]+|\[[0-9a-fA-F:]+\])(?::[0-9]{1,5})?(?:[/?#,;)\]}.]|$)`)
	port      = lazyregexp.New(`^[0-9]{1,5}(?:/|$)`)
)

// inURLs returns the passwords before the @ of URLs, and tokens that stand there alone.
func inURLs(text string) (found []span) {
	if !strings.Contains(text, "://") || !strings.Contains(text, "@") {
		return nil
	}
	for _, at := range authority.FindAllStringSubmatchIndex(text, -1) {
		rest := text[at[2]:at[3]]
		sign := -1
		for i, tries := 0, 0; i < len(rest) && tries < 8; i++ { // the last @ before a host
			if rest[i] == '@' && hostName.MatchString(rest[i+1:]) {
				sign = i
				tries++
			}
		}
		if sign < 0 {
			continue
		}
		user, secret, both := strings.Cut(rest[:sign], ":")
		switch {
		case strings.ContainsAny(user, "/?#@"):
		case !both:
			if len(user) >= 16 && opaque(user) {
				found = append(found, span{start: at[2], end: at[2] + sign, kind: Token})
			}
		case secret == "" || port.MatchString(secret) && strings.Contains(secret, "/"):
		case placeholder(secret):
		case strings.EqualFold(secret, "x-oauth-basic") || secret == "x":
			found = append(found, span{start: at[2], end: at[2] + len(user), kind: Token})
		default:
			found = append(found, span{start: at[2] + len(user) + 1, end: at[2] + sign, kind: Password})
			if len(user) >= 20 && opaque(user) && mixed(user) {
				found = append(found, span{start: at[2], end: at[2] + len(user), kind: Token})
			}
		}
	}
	return found
}

var (
	cookieLine = lazyregexp.New(`(?i)\bcookie["']?\s*[:=]\s*["']?`)
	cookiePair = lazyregexp.New(`([\w.$-]{1,60})=([^\s;,"']{16,})`)
)

// cookies returns what a Cookie header holds that is long and random.
func cookies(text, lower string) (found []span) {
	if !strings.Contains(lower, "cookie") {
		return nil
	}
	behind := 0
	for _, at := range cookieLine.FindAllStringIndex(text, -1) {
		if at[1] < behind {
			continue
		}
		line := text[at[1]:min(len(text), at[1]+longestSecret)]
		if i := strings.IndexFunc(line, func(r rune) bool { return r == '\n' || r == '"' || unicode.Is(unicode.Han, r) }); i >= 0 {
			line = line[:i]
		}
		behind = at[1] + len(line)
		for _, p := range cookiePair.FindAllStringSubmatchIndex(line, -1) {
			if opaque(line[p[4]:p[5]]) {
				found = append(found, span{start: at[1] + p[4], end: at[1] + p[5], kind: Token})
			}
		}
	}
	return found
}
