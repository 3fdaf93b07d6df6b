package dates_test

import (
	"testing"
	"time"
	"unicode/utf8"

	"github.com/memsidecar/memsidecar/internal/lang/dates"
)

// said is a Saturday morning.
var said = time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)

func brief(m dates.Mention) string {
	const day, minute = "2006-01-02", "2006-01-02 15:04"
	switch m.Precision {
	case dates.Minute, dates.Hour:
		return m.From.Format(minute)
	case dates.DayPart:
		return m.From.Format(minute) + "/" + m.To.Format("15")
	case dates.Day:
		return m.From.Format(day)
	case dates.Weekend:
		return "weekend " + m.From.Format(day)
	case dates.Week:
		return "week " + m.From.Format(day)
	case dates.Month:
		return m.From.Format("2006-01")
	default:
		return m.From.Format("2006")
	}
}

func TestFind(t *testing.T) {
	for _, c := range []struct {
		text string
		want []string // the phrases and their meanings, in turn
	}{
		{"dentist tomorrow at 3pm", []string{"tomorrow at 3pm", "2026-11-22 15:00"}},
		{"we leave the day after tomorrow", []string{"the day after tomorrow", "2026-11-23"}},
		{"I saw her the day before yesterday", []string{"the day before yesterday", "2026-11-19"}},
		{"see you tonight at 8", []string{"tonight at 8", "2026-11-21 20:00"}},
		{"I slept badly last night", []string{"last night", "2026-11-20 18:00/00"}},
		{"tomorrow morning at 9 I fly", []string{"tomorrow morning at 9", "2026-11-22 09:00"}},
		{"at half past eight tomorrow", []string{"half past eight tomorrow", "2026-11-22 08:30"}},
		{"half past eight in the evening", []string{"half past eight in the evening", "2026-11-21 20:30"}},
		{"quarter to nine", []string{"quarter to nine", "2026-11-21 08:45"}},
		{"The train leaves at 15:30", []string{"15:30", "2026-11-21 15:30"}},
		{"exam next Friday", []string{"next Friday", "2026-11-27"}},
		{"we met last Friday", []string{"last Friday", "2026-11-20"}},
		{"last Saturday", []string{"last Saturday", "2026-11-14"}},
		{"this Monday", []string{"this Monday", "2026-11-23"}},
		{"on Friday at 3pm", []string{"Friday at 3pm", "2026-11-27 15:00"}},
		{"3pm on Friday", []string{"3pm on Friday", "2026-11-27 15:00"}},
		{"Friday, November 27", []string{"Friday, November 27", "2026-11-27"}},
		{"by Thu", []string{"Thu", "2026-11-26"}},
		{"this weekend", []string{"this weekend", "weekend 2026-11-21"}},
		{"next weekend", []string{"next weekend", "weekend 2026-11-28"}},
		{"last weekend", []string{"last weekend", "weekend 2026-11-14"}},
		{"next week and last month", []string{"next week", "week 2026-11-23", "last month", "2026-10"}},
		{"next year or last year", []string{"next year", "2027", "last year", "2025"}},
		{"in three days", []string{"in three days", "2026-11-24"}},
		{"two weeks ago", []string{"two weeks ago", "week 2026-11-02"}},
		{"5 months ago", []string{"5 months ago", "2026-06"}},
		{"three years ago", []string{"three years ago", "2023"}},
		{"10 days from now", []string{"10 days from now", "2026-12-01"}},
		{"2026-11-21", []string{"2026-11-21", "2026-11-21"}},
		{"on 21 Nov", []string{"21 Nov", "2026-11-21"}},
		{"21 Nov 2027", []string{"21 Nov 2027", "2027-11-21"}},
		{"November 21st, 2027", []string{"November 21st, 2027", "2027-11-21"}},
		{"the 3rd of May", []string{"the 3rd of May", "2027-05-03"}},
		{"on March 5 at 10am", []string{"March 5 at 10am", "2027-03-05 10:00"}},
		{"since May 2023", []string{"May 2023", "2023-05"}},
		{"in June", []string{"June", "2027-06"}},
		{"last June", []string{"last June", "2026-06"}},

		{"明天下午三点去看牙", []string{"明天下午三点", "2026-11-22 15:00"}},
		{"大后天走", []string{"大后天", "2026-11-24"}},
		{"後天考試", []string{"後天", "2026-11-23"}},
		{"我前天去的", []string{"前天", "2026-11-19"}},
		{"今晚八点半吃饭", []string{"今晚八点半", "2026-11-21 20:30"}},
		{"昨晚没睡好", []string{"昨晚", "2026-11-20 18:00/00"}},
		{"明早九点的飞机", []string{"明早九点", "2026-11-22 09:00"}},
		{"下周三下午三点看牙", []string{"下周三下午三点", "2026-11-25 15:00"}},
		{"下周三开会", []string{"下周三", "2026-11-25"}},
		{"会议改到下周三三点了", []string{"下周三三点", "2026-11-25 03:00"}},
		{"上周五见过", []string{"上周五", "2026-11-13"}},
		{"本周日聚餐", []string{"本周日", "2026-11-22"}},
		{"礼拜天去爬山", []string{"礼拜天", "2026-11-22"}},
		{"下下周一", []string{"下下周一", "2026-11-30"}},
		{"周五晚上八点要和客户开会", []string{"周五晚上八点", "2026-11-27 20:00"}},
		{"这周末搬家", []string{"这周末", "weekend 2026-11-21"}},
		{"周末去露营", []string{"周末", "weekend 2026-11-21"}},
		{"下周末", []string{"下周末", "weekend 2026-11-28"}},
		{"下周出差", []string{"下周", "week 2026-11-23"}},
		{"上个星期", []string{"上个星期", "week 2026-11-09"}},
		{"下个月要做手术", []string{"下个月", "2026-12"}},
		{"下个月3号", []string{"下个月3号", "2026-12-03"}},
		{"上个月", []string{"上个月", "2026-10"}},
		{"从去年开始", []string{"去年", "2025"}},
		{"去年去了西藏", []string{"去年", "2025"}},
		{"预产期是明年三月", []string{"明年三月", "2027-03"}},
		{"明年3月5号", []string{"明年3月5号", "2027-03-05"}},
		{"三天后出发", []string{"三天后", "2026-11-24"}},
		{"我两周前搬的家", []string{"两周前", "week 2026-11-02"}},
		{"十二天后", []string{"十二天后", "2026-12-03"}},
		{"二十一天之后", []string{"二十一天之后", "2026-12-12"}},
		{"11月21日", []string{"11月21日", "2026-11-21"}},
		{"2026年11月21号", []string{"2026年11月21号", "2026-11-21"}},
		{"二〇二七年三月", []string{"二〇二七年三月", "2027-03"}},
		{"三月五号", []string{"三月五号", "2027-03-05"}},
		{"晚上十二点", []string{"晚上十二点", "2026-11-22 00:00"}},
		{"中午十二点", []string{"中午十二点", "2026-11-21 12:00"}},
		{"三点一刻集合", []string{"三点一刻", "2026-11-21 03:15"}},
		{"下午三点", []string{"下午三点", "2026-11-21 15:00"}},
		{"今天下午和明天上午", []string{"今天下午", "2026-11-21 12:00/18", "明天上午", "2026-11-22 06:00/12"}},
		{"这周一共去了两次", []string{"这周", "week 2026-11-16"}},
		{"上周三次", []string{"上周", "week 2026-11-09"}},
		{"明天周日", []string{"明天周日", "2026-11-22"}},
		{"年底前交", []string{"年", "2026"}},
		{"我tomorrow去", []string{"tomorrow", "2026-11-22"}},
	} {
		got := dates.Find(c.text, said, nil)
		if len(got)*2 != len(c.want) {
			t.Errorf("%q: got %v, want %v", c.text, words(got), c.want)
			continue
		}
		for i, m := range got {
			if m.Text != c.want[2*i] || brief(m) != c.want[2*i+1] {
				t.Errorf("%q: %q is %s, want %q %s", c.text, m.Text, brief(m), c.want[2*i], c.want[2*i+1])
			}
		}
	}
}

func words(list []dates.Mention) []string {
	var out []string
	for _, m := range list {
		out = append(out, m.Text+" = "+brief(m))
	}
	return out
}

// TestIgnoresWhatIsNoDate: Expressions that are ambiguous, recur, last or mean something else are not dates.
func TestIgnoresWhatIsNoDate(t *testing.T) {
	for _, text := range []string{
		"see you soon", "later", "I may go", "we march on", "every Monday", "on Sundays", "Monday to Friday", "my Friday yoga class", "today's youth",
		"I sat in the sun", "for two years", "a few days ago", "the last week of work", "more than two years ago", "I have 3 kids", "2.5",
		"once in a month",
		"Black Friday", "the next day", "look at 5 places", "in a way", "second to none", "12:30:45:", "the other day", "10-20-30",
		"最近很忙", "每周三上课", "周二周四有课", "明后天", "I had a great Monday", "每天晚上八点跑步", "周一到周五上班", "周三都有课", "周末都睡懒觉", "周末会去爬山", "一周一次",
		"我有一点累", "早一点睡", "我有两点建议", "以后天天跑步", "以前天天喝酒", "后天的努力", "今天的年轻人", "三个月", "手术三天后出院", "十几年前", "说明年份",
		"美好的明天", "晚上周杰伦唱歌", "晚上月亮很圆", "农历三月五号", "结婚三年了", "过去年轻", "发明年代", "30月5号", "13月40日", "从前天天", "两年了",
	} {
		if got := dates.Find(text, said, nil); len(got) > 0 {
			t.Errorf("%q: found %v", text, words(got))
		}
	}
}

func TestOpenDatesHaveAPastReading(t *testing.T) {
	for text, want := range map[string]string{
		"on Friday": "2026-11-20", "周五": "2026-11-20", "in June": "2026-06", "3月5日": "2026-03-05",
		"周末": "weekend 2026-11-14",
	} {
		got := dates.Find(text, said, nil)
		if len(got) != 1 || !got[0].Open || brief(got[0].Past()) != want {
			t.Errorf("%q: got %v, want one open date, in the past %s", text, words(got), want)
		}
	}
	if m := dates.Find("next Friday", said, nil)[0]; m.Open || brief(m.Past()) != brief(m) {
		t.Errorf("%v is in the past", m)
	}
}

// TestDaysAreThoseOfTheSpeakersZone: A day is that of the speaker's time zone: at 23:30 UTC it is the next day in Shanghai.
func TestDaysAreThoseOfTheSpeakersZone(t *testing.T) {
	shanghai := time.FixedZone("CST", 8*3600)
	late := time.Date(2026, 11, 21, 23, 30, 0, 0, time.UTC)
	m := dates.Find("明天", late, shanghai)[0]
	if brief(m) != "2026-11-23" || !m.From.Equal(time.Date(2026, 11, 22, 16, 0, 0, 0, time.UTC)) {
		t.Errorf("got %s, %s", brief(m), m.From)
	}
}

func FuzzFind(f *testing.F) {
	for _, s := range []string{
		"tomorrow at 3pm, or 明天下午三点", "下周三三点 on Friday, Nov 27", "2026-02-30 二十十天后 24:61", "\xff明天\xe6 in 999 years",
		"K4 ſunday at 12 in the morning",
	} {
		f.Add(s, int64(1763719200))
	}
	f.Fuzz(func(t *testing.T, text string, unix int64) {
		at := time.Unix(unix%(1<<33), 0)
		end := 0
		for _, m := range dates.Find(text, at, time.UTC) {
			switch {
			case m.Start < end || m.End <= m.Start || m.End > len(text) || text[m.Start:m.End] != m.Text:
				t.Fatalf("%q: %d-%d after %d", text, m.Start, m.End, end)
			case !m.To.After(m.From):
				t.Fatalf("%q: %q ends at %s, before it begins at %s", text, m.Text, m.To, m.From)
			case m.Calendar.End > 0 && (m.Calendar.Start < m.Start || m.Calendar.End > m.End || m.Calendar.End <= m.Calendar.Start ||
				!m.Calendar.To.After(m.Calendar.From)):
				t.Fatalf("%q: calendar %+v outside of %d-%d", text, m.Calendar, m.Start, m.End)
			case utf8.ValidString(text) && !utf8.ValidString(m.Text):
				t.Fatalf("%q: cuts a character: %q", text, m.Text)
			}
			end = m.End
		}
	})
}

// TestDaysWithoutMidnight: A day that begins at one o'clock, without a midnight, is resolved correctly, and so are the days after it.
func TestDaysWithoutMidnight(t *testing.T) {
	havana, err := time.LoadLocation("America/Havana") // there 2026-03-08 begins at 01:00
	if err != nil {
		t.Fatal(err)
	}
	before, during := time.Date(2026, 3, 7, 15, 0, 0, 0, havana), time.Date(2026, 3, 8, 15, 0, 0, 0, havana)
	for _, c := range []struct {
		said       time.Time
		text, want string
	}{
		{before, "see you tomorrow", "2026-03-08"},
		{before, "明天见", "2026-03-08"},
		{before, "明天上午九点开会", "2026-03-08 09:00"},
		{before, "the party is on March 8", "2026-03-08"},
		{before, "这个周末去爬山", "weekend 2026-03-07"},
		{during, "明天见", "2026-03-09"},
		{during, "the day before yesterday", "2026-03-06"},
		{during, "next week", "week 2026-03-09"},
	} {
		found := dates.Find(c.text, c.said, havana)
		if len(found) != 1 || brief(found[0]) != c.want || !found[0].To.After(found[0].From) {
			t.Errorf("said on %s, %q is %v, not %s", c.said.Format(time.DateOnly), c.text, found, c.want)
		}
	}
}
