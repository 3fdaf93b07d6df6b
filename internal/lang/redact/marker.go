package redact

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/memsidecar/memsidecar/internal/lang/lazyregexp"
)

// named is what a kind is called in markers and reasons.
var named = map[Kind]struct{ en, zh string }{
	APIKey:        {"API key", "API密钥"},
	Token:         {"token", "令牌"},
	PrivateKey:    {"private key", "私钥"},
	Password:      {"password", "密码"},
	CardNumber:    {"card number", "银行卡号"},
	Identity:      {"identity number", "身份号码"},
	AccountNumber: {"account number", "银行账号"},
}

const (
	beginEN, beginZH = "[redacted: ", "[已隐去："
	endMarker        = "]"
)

// markers are what marker writes.
var markers = lazyregexp.New(`\[redacted: [A-Za-z ]{3,20}\]|\[已隐去：[A-Za-z\p{Han}]{2,10}\]`)

// markerAt is how long the marker is that a text begins with, 0 if it begins with none.
func markerAt(text string) int {
	for _, at := range markers.FindAllStringIndex(text[:min(len(text), 64)], 1) {
		if at[0] == 0 {
			return at[1]
		}
	}
	return 0
}

// isChinese reports whether a text's markers are in Chinese: it has Chinese characters.
func isChinese(text string) bool {
	return strings.ContainsFunc(text, func(r rune) bool { return unicode.Is(unicode.Han, r) })
}

// marker stands for a secret in a text.
func marker(kind Kind, chinese bool) string {
	if chinese {
		return beginZH + named[kind].zh + endMarker
	}
	return beginEN + named[kind].en + endMarker
}

// Found is how many secrets of each kind there were.
type Found map[Kind]int

// count adds the markers of a text.
func (f Found) count(text string) {
	if !strings.Contains(text, "[") {
		return
	}
	for _, kind := range Kinds() {
		n := strings.Count(text, beginEN+named[kind].en+endMarker) + strings.Count(text, beginZH+named[kind].zh+endMarker)
		if n > 0 {
			f[kind] += n
		}
	}
}

// String says it in words, such as "1 API key and 2 passwords", and never what the secrets are. It is empty when there were
// none.
func (f Found) String() string {
	var list []string
	for _, kind := range Kinds() {
		switch n := f[kind]; n {
		case 0:
		case 1:
			list = append(list, "1 "+named[kind].en)
		default:
			list = append(list, fmt.Sprintf("%d %ss", n, named[kind].en))
		}
	}
	if n := len(list); n > 1 {
		return strings.Join(list[:n-1], ", ") + " and " + list[n-1]
	}
	return strings.Join(list, "")
}
