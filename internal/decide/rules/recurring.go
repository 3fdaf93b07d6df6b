package rules

import (
	"strings"

	"github.com/memsidecar/memsidecar/internal/lang/dates"
	"github.com/memsidecar/memsidecar/internal/lang/lazyregexp"
)

var (
	// Words that recur make the days after them recur as well: 每周都会在周末去打球. "Today is Sunday" says what day it is.
	recursZH = lazyregexp.New(`每(周|个|到|逢|次|天|年|月|星期|礼拜|隔)|总是|经常|常常|通常|一般|平时|天天`)
	recursEN = lazyregexp.New(`(?i)\b(every|each|always|usually|often|normally|typically|generally|mostly|regularly)\b`)
	todayIs  = lazyregexp.New(`(?i)\b(today|tomorrow|yesterday)( is|'s|’s| was)( a| already| finally)? ((mon|tues|wednes|thurs|fri|` +
		`satur|sun)day|the weekend)\b|\bit( is|'s|’s) (mon|tues|wednes|thurs|fri|satur|sun)day( again)? today\b|[今明昨]天(已经|就|正好|刚好)?(是|周|` +
		`星期|礼拜)(周|星期|礼拜)?[一二三四五六日天末]`)
	// "Today is Sunday and the user …" becomes "Today the user …".
	todayIsHead = lazyregexp.New(`(?i)^(?:it(?: is|'s|’s) (?:mon|tues|wednes|thurs|fri|satur|sun)day (today)|(today|tomorrow)(?: is|` +
		`'s|’s)(?: a| already| finally)? (?:(?:mon|tues|wednes|thurs|fri|satur|sun)day|the weekend))(?:,? (?:and|so)|,)? (the user|their|` +
		`he|she|they)\b`)
	// What leads to a day and belongs to the words before: 那今天晚上.
	thenZH = lazyregexp.New(`^(那么|那|好的?，|嗯，)([今明后昨前]天|[今明]晚|下周|周末|上周)`)
	// A greeting with the name of the one greeted.
	greetedEN = lazyregexp.New(`(?i)^(hello|hi|hey|good (?:morning|evening|afternoon)|dear)(( [a-z]+){0,3}[,!]|( my)?( dear| ai| good|` +
		` old)* (friend|buddy|assistant|pal)[.,!]?) +`)
	greetedZH = lazyregexp.New(`^(助手好|你好|您好|嗨|哈喽|早上好|下午好|晚上好|亲爱的)(助手|用户)?的?[\p{Han}a-zA-Z]{0,6}[，,！!]|^亲爱的(朋友|助手|伙伴)`)
)

// withoutHead drops from a statement what leads to its day and says nothing: a greeting, "then", "today is Sunday and".
func withoutHead(text, lang string) string {
	if lang == chinese {
		if end := matchEnd(greetedZH, text); end > len("，") {
			text = text[end:]
		}
		return thenZH.ReplaceAllString(text, "$2")
	}
	if end := matchEnd(greetedEN, text); end > 0 && end < len(text) {
		text = strings.ToUpper(text[end:end+1]) + text[end+1:]
	}
	if at := todayIsHead.FindStringSubmatch(text); at != nil {
		return capitalIf(true, at[1]+at[2]) + " " + at[3] + text[len(at[0]):]
	}
	return text
}

// again reports whether a mention is not a single day: it recurs, or only says what day of the week today is.
func again(text string, m dates.Mention, lang string) bool {
	for _, at := range todayIs.FindAllStringIndex(text, -1) {
		if at[0] <= m.Start && m.Start < at[1] {
			return true
		}
	}
	if !m.Calendar.Weekday && m.Calendar.Precision != dates.Weekend {
		return false
	}
	clause := clauseAround(text, m.Start, m.End)
	before, _, _ := strings.Cut(clause, text[m.Start:m.End])
	if lang == chinese {
		return recursZH.MatchString(before)
	}
	return recursEN.MatchString(before)
}
