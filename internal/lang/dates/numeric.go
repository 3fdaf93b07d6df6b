package dates

// Numeric reads the numeric date at the beginning of a text, such as 2023-05-04, 2023/5/4, 2023年5月4日 and 2023-05, and returns its
// length, or 0. Day is 0 when only the month is named. It does not check how long the month is.
func Numeric(text string) (d Date, n int) {
	var ok bool
	if d.Year, n = leadingNumber(text, 4); n != 4 || d.Year < 1900 || d.Year > 2199 || n >= len(text) {
		return Date{}, 0
	}
	separator, units := text[n:n+1], false
	switch separator {
	case "-", "/", ".":
		n++
	default:
		if n, ok = skip(text, n, "年"); !ok {
			return Date{}, 0
		}
		units = true
	}
	month, size := leadingNumber(text[n:], 2)
	if size == 0 || month < 1 || month > 12 {
		return Date{}, 0
	}
	d.Month, n = month, n+size
	if units {
		if n, ok = skip(text, n, "月"); !ok {
			return Date{}, 0
		}
		if day, size := leadingNumber(text[n:], 2); size > 0 && day >= 1 && day <= 31 {
			if end, ok := skip(text, n+size, "日", "号", "號"); ok {
				d.Day, n = day, end
			}
		}
		return d, n
	}
	if end, ok := skip(text, n, separator); ok {
		if day, size := leadingNumber(text[end:], 2); size > 0 && day >= 1 && day <= 31 {
			d.Day = day
			return d, end + size
		}
	}
	if separator == "." { // 2023.5 is a number
		return Date{}, 0
	}
	return d, n
}

// leadingNumber reads the digits at the beginning of a text; size is 0 unless there are 1 to most of them.
func leadingNumber(text string, most int) (value, size int) {
	for size < len(text) && text[size] >= '0' && text[size] <= '9' {
		if size == most {
			return 0, 0
		}
		value = value*10 + int(text[size]-'0')
		size++
	}
	return value, size
}

// skip returns the offset after one of the words at offset n.
func skip(text string, n int, words ...string) (int, bool) {
	for _, w := range words {
		if len(text)-n >= len(w) && text[n:n+len(w)] == w {
			return n + len(w), true
		}
	}
	return n, false
}
