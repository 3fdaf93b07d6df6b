package lexical

import "strconv"

// dates emits every numeric date in one spelling, as day and as month: 2023年5月4日, 2023/5/4 and 2023-05-04 all give
// "2023-05-04" and "2023-05".
func (s *scanner) dates() {
	for i := 0; i < len(s.text); i++ {
		if !isASCIIDigit(s.text[i]) {
			continue
		}
		d, n := parseDate(s.text[i:])
		if n == 0 {
			for i+1 < len(s.text) && isASCIIDigit(s.text[i+1]) {
				i++
			}
			continue
		}
		month := strconv.Itoa(d.year) + "-" + twoDigits(d.month)
		if d.day > 0 {
			day := month + "-" + twoDigits(d.day)
			s.emit(Token{Term: day, Surface: day, Kind: Compound})
		}
		s.emit(Token{Term: month, Surface: month, Kind: Compound})
		i += n - 1
	}
}

// date is a day, or a month when day is 0.
type date struct{ year, month, day int }

// isDate reports whether the text is a date and nothing else.
func isDate(text string) bool {
	_, n := parseDate(text)
	return n > 0 && n == len(text)
}

// parseDate reads the date that the text begins with and returns its length, or 0 when there is none. It does not know
// how long a month is: 2023-02-31 finds itself.
func parseDate(text string) (d date, n int) {
	var ok bool
	if d.year, n = leadingNumber(text, 4); n != 4 || d.year < 1900 || d.year > 2199 || n >= len(text) {
		return date{}, 0
	}
	separator, units := text[n:n+1], false
	switch separator {
	case "-", "/", ".":
		n++
	default:
		if n, ok = skip(text, n, "年"); !ok {
			return date{}, 0
		}
		units = true
	}
	month, size := leadingNumber(text[n:], 2)
	if size == 0 || month < 1 || month > 12 {
		return date{}, 0
	}
	d.month, n = month, n+size
	if units {
		if n, ok = skip(text, n, "月"); !ok {
			return date{}, 0
		}
		if day, size := leadingNumber(text[n:], 2); size > 0 && day >= 1 && day <= 31 {
			if end, ok := skip(text, n+size, "日", "号", "號"); ok {
				d.day, n = day, end
			}
		}
		return d, n
	}
	if end, ok := skip(text, n, separator); ok {
		if day, size := leadingNumber(text[end:], 2); size > 0 && day >= 1 && day <= 31 {
			d.day = day
			return d, end + size
		}
	}
	if separator == "." { // 2023.5 is a number
		return date{}, 0
	}
	return d, n
}

// leadingNumber reads the digits that the text begins with; size is 0 when there are none or more than most.
func leadingNumber(text string, most int) (value, size int) {
	for size < len(text) && isASCIIDigit(text[size]) {
		if size == most {
			return 0, 0
		}
		value = value*10 + int(text[size]-'0')
		size++
	}
	return value, size
}

// skip is the offset behind one of the words at offset n.
func skip(text string, n int, words ...string) (int, bool) {
	for _, w := range words {
		if len(text)-n >= len(w) && text[n:n+len(w)] == w {
			return n + len(w), true
		}
	}
	return n, false
}

func twoDigits(n int) string {
	if n < 10 {
		return "0" + strconv.Itoa(n)
	}
	return strconv.Itoa(n)
}
