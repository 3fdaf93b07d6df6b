package redact

import "strings"

// ibanLengths are how long account numbers are, by country (ISO 13616 registry).
var ibanLengths = func() map[string]int {
	lengths, length := map[string]int{}, 0
	for one := range strings.FieldsSeq(`15:NO 16:BE 18:DK FO FI GL NL SD FK 19:MK SI 20:AT BA EE KZ LT LU MN XK 21:CH HR LI LV 22:BG BH CR ` +
		`DE GB GE IE ME RS VA
		23:AE GI IL IQ OM TL SO 24:AD CZ ES MD PK RO SA SE SK TN VG 25:LY PT ST 26:IS TR 27:BI DJ FR GR IT MC MR SM 28:AL AZ BY CY DO GT HU ` +
		`LB NI PL SV
		29:BR EG PS QA UA 30:JO KW MU YE 31:MT SC 32:LC 33:RU`) {
		if n, country, ok := strings.Cut(one, ":"); ok {
			length, one = int(n[0]-'0')*10+int(n[1]-'0'), country
		}
		lengths[one] = length
	}
	return lengths
}()

// accounts returns international bank account numbers (ISO 13616), by country, length and check digits.
func accounts(text string) (found []span) {
	for at := 0; at+14 < len(text); at++ {
		if !digitByte(text[at+2]) || !digitByte(text[at+3]) || at > 0 && partOfName(rune(text[at-1])) {
			continue
		}
		length := ibanLengths[strings.ToUpper(text[at:at+2])]
		if length == 0 {
			continue
		}
		number, end := ibanAt(text, at, length)
		if len(number) < length || end < len(text) && partOfName(rune(text[end])) {
			continue
		}
		rest := 0
		for _, c := range append(number[4:], number[:4]...) {
			rest = mod97(rest, c)
		}
		if rest == 1 {
			found = append(found, span{start: at, end: end, kind: AccountNumber})
			at = end - 1
		}
	}
	return found
}

// ibanAt reads so many letters and digits, with single blanks or hyphens between them.
func ibanAt(text string, at, length int) (number []byte, end int) {
	for end = at; end < len(text) && len(number) < length; end++ {
		c := text[end]
		switch {
		case digitByte(c), upperByte(c):
			number = append(number, c)
		case isLetterByte(c):
			number = append(number, c+'A'-'a')
		case (c == ' ' || c == '-') && text[end-1] != c:
		default:
			return number, end
		}
	}
	return number, end
}

func digitByte(b byte) bool { return b >= '0' && b <= '9' }

// mod97 continues the calculation of a remainder (ISO 7064, MOD 97-10) with a character; letters count from 10.
func mod97(rest int, c byte) int {
	if digitByte(c) {
		return (rest*10 + int(c-'0')) % 97
	}
	return (rest*100 + int(c-'A') + 10) % 97
}
