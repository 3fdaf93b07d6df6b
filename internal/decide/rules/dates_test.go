package rules

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/memsidecar/memsidecar/internal/memory"
)

// What is said on Wednesday, March 4th 2026, is told with the days meant.
func TestDays(t *testing.T) {
	r := newRules(t, Config{})
	for _, c := range []said{
		{"明天下午三点去看牙", []string{"用户2026年3月5日下午三点去看牙"}},
		{"我大后天要去杭州出差", []string{"用户2026年3月7日要去杭州出差"}},
		{"今晚八点我要和房东见面", []string{"2026年3月4日晚上八点用户要和房东见面"}},
		{"我上周五去了医院体检", []string{"用户2026年2月27日（周五）去了医院体检"}},
		{"我周一去了医院体检", []string{"用户2026年3月2日（周一）去了医院体检"}},
		{"我周一要去医院体检", []string{"用户2026年3月9日（周一）要去医院体检"}},
		{"我三天后要搬到南京", []string{"用户2026年3月7日要搬到南京"}},
		{"我从下周开始在银行工作", []string{"用户从2026年3月9日那周开始在银行工作"}},
		{"明年3月5号我结婚", []string{"2027年3月5日用户结婚"}},
		{"我每周三晚上学画画", []string{"用户每周三晚上学画画"}},
		{"我周一到周五都在公司上班", []string{"用户周一到周五都在公司上班"}},
		{"我喜欢今天的年轻人", []string{"用户喜欢今天的年轻人"}},
		{"我昨天看了《后天》", []string{"用户2026年3月3日看了《后天》"}},
		{"我的生日是5月3日", []string{"用户的生日是5月3日"}},

		{"I have a dentist appointment tomorrow at 3pm", []string{"The user has a dentist appointment on 2026-03-05 (Thursday) at 3pm."}},
		{"Tomorrow I have a job interview", []string{"On 2026-03-05 (Thursday) the user has a job interview."}},
		{"Tomorrow is my birthday", []string{"2026-03-05 (Thursday) is the user's birthday."}},
		{"My birthday is tomorrow", []string{"The user's birthday is on 2026-03-05 (Thursday)."}},
		{"My flight is next Friday morning", []string{"The user's flight is on the morning of 2026-03-13 (Friday)."}},
		{"I am nervous about tomorrow's exam", []string{"The user is nervous about the 2026-03-05 exam."}},
		{"I have to hand in my thesis by tonight", []string{"The user has to hand in their thesis by the evening of 2026-03-04 (Wednesday)."}},
		{"I met my sister on Monday", []string{"The user met their sister on 2026-03-02 (Monday)."}},
		{"I decided to cook for my sister on Friday", []string{"The user decided to cook for their sister on 2026-03-06 (Friday)."}},
		{"I promised to call my sister on Monday", []string{"The user promised to call their sister on 2026-03-09 (Monday)."}},
		{"I'm meeting my sister on Monday", []string{"The user is meeting their sister on 2026-03-09 (Monday)."}},
		{"I go to yoga every Monday", []string{"The user goes to yoga every Monday."}},
		{"My sister is visiting me next month", []string{"The user's sister is visiting them in April 2026."}},
		{"I've been a nurse since last year", []string{"The user has been a nurse since 2025."}},
		{"I finished the marathon training in three months", []string{"The user finished the marathon training in three months."}},
		{`I watched "The Day After Tomorrow" yesterday`, []string{`The user watched "The Day After Tomorrow" on 2026-03-03 (Tuesday).`}},
		{"I retook the exam with my sister, whom I last saw in May", []string{"The user retook the exam with their sister, whom they last " +
			"saw in May."}},
		{"I moved in with my sister yesterday", []string{"The user moved in with their sister on 2026-03-03 (Tuesday)."}},
		{"I gave my sister the shelter I volunteer at yesterday", []string{"The user gave their sister the shelter they volunteer at on " +
			"2026-03-03 (Tuesday)."}},
		{"I am going to host a party on the weekend with my brother", []string{"The user is going to host a party on the weekend of " +
			"2026-03-07 with their brother."}},
		{"We met last week", []string{`The user said on 2026-03-04: "We met last week"`}},
	} {
		v, s := consider(t, r, talk(c.words))
		if got := texts(s); !slices.Equal(got, c.want) {
			t.Errorf("%q\n got %q\nwant %q\n%s", c.words, got, c.want, v.Reason)
		}
		if len(s) > 0 && !strings.Contains(c.words, s[0].Quote) {
			t.Errorf("%q: quotes %q", c.words, s[0].Quote)
		}
	}
}

// The day is that of the speaker's clock.
func TestDaysOfTheTimeZone(t *testing.T) {
	tr := talk("I have a dentist appointment tomorrow")
	tr.Dialogue.Messages[0].Time = time.Date(2026, 3, 4, 23, 0, 0, 0, time.UTC)
	tr.Location = time.FixedZone("east", 8*3600)
	_, s := consider(t, newRules(t, Config{}), tr)
	if got := texts(s); !slices.Equal(got, []string{"The user has a dentist appointment on 2026-03-06 (Friday)."}) {
		t.Errorf("got %q", got)
	}
	if end := time.Date(2026, 3, 7, 0, 0, 0, 0, tr.Location); len(s) > 0 && !s[0].ValidTo.Equal(end) {
		t.Errorf("valid to %s, want %s", s[0].ValidTo, end)
	}
}

func TestTwoDaysSayTheSameWords(t *testing.T) {
	tr := talk("I went to the gym with my brother yesterday", "A: Nice.", "I went to the gym with my brother yesterday")
	tr.Dialogue.Messages[2].Time = noon.AddDate(0, 0, 2)
	_, s := consider(t, newRules(t, Config{}), tr)
	want := []string{"The user went to the gym with their brother on 2026-03-03 (Tuesday).", "The user went to the gym with their brother " +
		"on 2026-03-05 (Thursday)."}
	if got := texts(s); !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}

func TestValidTo(t *testing.T) {
	r := newRules(t, Config{})
	for words, want := range map[string]string{
		"明天下午三点去看牙医":                              "2026-03-06",
		"我打算明年考研":                                 "2028-01-01",
		"我3月10日要开会":                               "2026-03-11",
		"周五晚上八点要和客户开会":                            "2026-03-07",
		"今晚我要和客户开会":                               "2026-03-05",
		"I have a job interview next Friday":      "2026-03-14",
		"My dentist appointment is on March 5":    "2026-03-06",
		"I plan to go to Oslo next month":         "2026-05-01",
		"I'm meeting Ann for lunch on Tuesday":    "2026-03-11",
		"I had a job interview yesterday":         "",
		"昨天我去开会了":                                 "",
		"昨天下午三点我和客户开会了":                           "",
		"My dentist appointment was yesterday":    "",
		"我每周三晚上开会":                                "",
		"I have a team meeting every Friday":      "",
		"我打算从明天起每天学吉他":                            "",
		"I plan to learn sailing":                 "",
		"I'm allergic to peanuts since last year": "",
	} {
		_, s := consider(t, r, talk(words))
		if len(s) == 0 {
			if want != "" {
				t.Errorf("%q is not remembered", words)
			}
			continue
		}
		got := ""
		if !s[0].ValidTo.IsZero() {
			got = s[0].ValidTo.Format(time.DateOnly)
		}
		if got != want {
			t.Errorf("%q (%s): valid to %q, want %q", words, s[0].Kind, got, want)
		}
		if got != "" && !slices.Contains([]memory.Kind{memory.KindAppointment, memory.KindPlan, memory.KindTask}, s[0].Kind) {
			t.Errorf("%q: a %s ends", words, s[0].Kind)
		}
	}
}
