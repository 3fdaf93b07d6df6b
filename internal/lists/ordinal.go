package lists

import "strconv"

// Ordinal is a position in a list: from the beginning (1 is the first) or from the end (-1 is the last).
type Ordinal int

// In converts to a number from 1 in a list of count items; the result may be out of range.
func (o Ordinal) In(count int) int {
	if o < 0 {
		return count + 1 + int(o)
	}
	return int(o)
}

// maxOrdinal is larger than any list; larger numbers are capped to it.
const maxOrdinal = 1_000_000

// digits parses ASCII digits only.
func digits(text string) (Ordinal, bool) {
	if text == "" {
		return 0, false
	}
	for _, r := range text {
		if r < '0' || r > '9' {
			return 0, false
		}
	}
	n, err := strconv.Atoi(text)
	if err != nil || n > maxOrdinal {
		n = maxOrdinal
	}
	return Ordinal(n), true
}

// reading is a number parsed at a position.
type reading struct {
	n      Ordinal
	end    int
	digits bool
}

// number parses digits, or a Chinese number, at a position.
func (p *parser) number(at int) (r reading, ok bool) {
	end := at
	for end < len(p.text) && p.text[end] >= '0' && p.text[end] <= '9' {
		end++
	}
	if end > at {
		if at > 0 && wordRune(p.text[at-1]) || end < len(p.text) && wordRune(p.text[end]) {
			return r, false
		}
		n, ok := digits(string(p.text[at:end]))
		return reading{n, end, true}, ok
	}
	for end < len(p.text) {
		_, digit := chineseDigits[p.text[end]]
		_, unit := chineseUnits[p.text[end]]
		if !digit && !unit {
			break
		}
		end++
	}
	n, ok := chineseNumber(string(p.text[at:end]))
	return reading{n, end, false}, ok
}
