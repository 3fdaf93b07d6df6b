package redact

import (
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/memsidecar/memsidecar/internal/lang/lazyregexp"
)

// group is a run of digits in a text.
type group struct{ start, end int }

func (g group) of(text string) string { return text[g.start:g.end] }

var digits = lazyregexp.New(`[0-9]+`)

// How cards are written in groups.
var groupings = [][]int{{4, 4, 4, 4}, {4, 4, 4, 4, 3}, {4, 6, 5}, {4, 6, 4}, {6, 13}, {4, 4, 4, 4, 2}, {4, 4, 4, 4, 1}}

// Words before a number that say what it is.
var (
	ofCards  = lazyregexp.New(`(?i)cards?\b|\bvisa\b|master ?card|amex|american express|unionpay|debit|credit|卡|银联|账户|賬戶|账号`)
	ofOrders = lazyregexp.New(`(?i)orders?\b|tracking|parcel|shipment|invoice|serial|ticket|\bref\b|reference|transaction|\bids?\b|` +
		`isbn|imei|phone|call|tel\b|[订訂]单|單號|单号|运单|快递|发票|流水|编号|序列号|票号|电话|手机|群号|[qQ]{2}`)
)

// wordsBefore is how many bytes before a number are looked at for what it is.
const wordsBefore = 48

func cards(text string) (found []span) {
	if countDigits(text) < 13 {
		return nil
	}
	groups := digits.FindAllStringIndex(text, -1)
	for i := 0; i < len(groups); i++ {
		for _, sizes := range groupings {
			if last, ok := fits(text, groups[i:], sizes); ok {
				s := span{start: groups[i][0], end: last, kind: CardNumber}
				if isCard(text, s, true) {
					found = append(found, s)
					i += len(sizes) - 1
					break
				}
			}
		}
		if s := (span{start: groups[i][0], end: groups[i][1], kind: CardNumber}); s.end-s.start >= 13 && isCard(text, s, false) {
			found = append(found, s)
		}
	}
	return found
}

func countDigits(text string) (n int) {
	for i := range len(text) {
		if text[i] >= '0' && text[i] <= '9' {
			n++
		}
	}
	return n
}

// fits reports whether the groups begin with such sizes, with the same one blank or hyphen between them.
func fits(text string, groups [][]int, sizes []int) (end int, ok bool) {
	if len(groups) < len(sizes) {
		return 0, false
	}
	separator := ""
	for i, size := range sizes {
		g := group{groups[i][0], groups[i][1]}
		if len(g.of(text)) != size {
			return 0, false
		}
		if i == 0 {
			continue
		}
		between := text[groups[i-1][1]:g.start]
		if i == 1 {
			separator = between
		}
		if between != separator || between != " " && between != "-" && between != "\u00a0" {
			return 0, false
		}
		end = g.end
	}
	return end, true
}

// isCard reports whether a number is that of a card, and not of an order, a phone or an account of some game.
func isCard(text string, s span, grouped bool) bool {
	if !alone(text, s) {
		return false
	}
	number := strings.Map(func(r rune) rune {
		if r < '0' || r > '9' {
			return -1
		}
		return r
	}, text[s.start:s.end])
	if !luhn(number) {
		return false
	}
	before := text[max(0, s.start-wordsBefore):s.start]
	before = before[strings.LastIndex(before, endMarker)+1:] // a marker's words are nobody's
	card, other := lastOf(ofCards, before), lastOf(ofOrders, before)
	switch {
	case card >= 0 && card > other:
		return len(number) >= 13
	case other >= 0 && !grouped:
		return false
	}
	return network(number)
}

func lastOf(pattern *lazyregexp.Regexp, text string) int {
	if all := pattern.FindAllStringIndex(text, -1); len(all) > 0 {
		return all[len(all)-1][0]
	}
	return -1
}

// alone reports whether a number is not a part of something longer, such as a hash, a UUID or a decimal.
func alone(text string, s span) bool {
	before, _ := utf8.DecodeLastRuneInString(text[:s.start])
	after, size := utf8.DecodeRuneInString(text[s.end:])
	switch {
	case partOfName(before), partOfName(after), strings.ContainsRune("+#./-@", before):
		return false
	case after == '.' || after == '-':
		next, _ := utf8.DecodeRuneInString(text[s.end+size:])
		return !partOfName(next)
	}
	return true
}

func partOfName(r rune) bool {
	return r == '_' || r < utf8.RuneSelf && (unicode.IsLetter(r) || unicode.IsDigit(r))
}

// network reports whether a number begins as the cards of a network of that length do (ISO/IEC 7812).
func network(number string) bool {
	prefix := func(n int) int {
		value, err := strconv.Atoi(number[:n])
		if err != nil {
			return -1
		}
		return value
	}
	two, three, four := prefix(2), prefix(3), prefix(4)
	switch len(number) {
	case 14:
		return two == 36 || two == 38 || three >= 300 && three <= 305 // Diners Club
	case 15:
		return two == 34 || two == 37 // American Express
	case 16:
		return number[0] == '4' || // Visa
			two >= 51 && two <= 55 || four >= 2221 && four <= 2720 || // Mastercard
			two == 62 || two == 81 || // UnionPay
			four == 6011 || two == 65 || three >= 644 && three <= 649 || // Discover
			four >= 3528 && four <= 3589 // JCB
	case 19:
		return number[0] == '4' || two == 62
	}
	return false
}

// luhn checks the last digit (ISO/IEC 7812-1, annex B).
func luhn(number string) bool {
	sum, same := 0, true
	for i := range len(number) {
		d := int(number[len(number)-1-i] - '0')
		same = same && number[i] == number[0]
		if i&1 == 1 {
			if d *= 2; d > 9 {
				d -= 9
			}
		}
		sum += d
	}
	return sum%10 == 0 && !same
}

var (
	resident       = lazyregexp.New(`[1-9][0-9]{16}[0-9Xx]`)
	socialSecurity = lazyregexp.New(`(?i)(?:\bssn|social security(?: (?:number|no\.?))?)["']?\s*(?:is|=|:|#)?\s*([0-9]{3}[- ` +
		`]?[0-9]{2}[- ]?[0-9]{4})`)
)

func identities(text, lower string) (found []span) {
	if countDigits(text) < 9 {
		return nil
	}
	for _, at := range resident.FindAllStringIndex(text, -1) {
		s := span{start: at[0], end: at[1], kind: Identity}
		before, _ := utf8.DecodeLastRuneInString(text[:s.start])
		after, _ := utf8.DecodeRuneInString(text[s.end:])
		if !partOfName(before) && !partOfName(after) && isResident(text[s.start:s.end]) {
			found = append(found, s)
		}
	}
	if !containsAny(lower, []string{"ssn", "social security"}) {
		return found
	}
	for _, at := range socialSecurity.FindAllStringSubmatchIndex(text, -1) {
		if s := (span{start: at[2], end: at[3], kind: Identity}); alone(text, s) {
			found = append(found, s)
		}
	}
	return found
}

// isResident checks a Chinese resident identity number (GB 11643-1999): province, date of birth, and the last character
// (ISO 7064, MOD 11-2).
func isResident(number string) bool {
	if province := number[:2]; province < "11" || province > "83" || province[1] == '0' && province != "50" {
		return false
	}
	born, err := time.Parse("20060102", number[6:14])
	if err != nil || born.Year() < 1880 || born.After(time.Now()) {
		return false
	}
	sum := 0
	for i := range 17 {
		weight := 1 << (17 - i) % 11
		sum += int(number[i]-'0') * weight
	}
	return strings.ToUpper(number[17:]) == "10X98765432"[sum%11:sum%11+1]
}
