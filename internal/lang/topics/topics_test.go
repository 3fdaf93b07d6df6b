package topics_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/memsidecar/memsidecar/internal/lang/topics"
	"github.com/memsidecar/memsidecar/internal/memory"
)

// messages parses lines "speaker: text".
func messages(lines ...string) (all []topics.Message) {
	for _, line := range lines {
		speaker, text, _ := strings.Cut(line, ": ")
		all = append(all, topics.Message{Speaker: speaker, Text: text})
	}
	return all
}

func of(t *testing.T, now, before []topics.Message, rule topics.Rule) (names []string, by map[string]topics.Topic) {
	t.Helper()
	found, err := topics.Of(t.Context(), now, before, rule, topics.MaxTopics)
	if err != nil {
		t.Fatal(err)
	}
	by = map[string]topics.Topic{}
	for _, topic := range found {
		names = append(names, topic.Text)
		by[topic.Text] = topic
	}
	return names, by
}

func TestTopics(t *testing.T) {
	for _, test := range []struct {
		name  string
		lines []string
		want  []string // all topics, in any order
	}{
		{"a word, not the beginning of what follows it", []string{
			"甲: 今天天气怎么样", "乙: 天气不太好，要下雨", "丙: 明天天气会好吗？", "甲: 我看了天气预报",
		}, []string{"天气"}},
		{"a word, not its parts", []string{
			"甲: 人工智能真的能写小说吗", "乙: 我觉得人工智能还不行", "丙: 公司在用人工智能做客服",
		}, []string{"人工智能"}},
		{"a word inside of a longer one, when it stands alone as well", []string{
			"甲: 上海好玩吗", "乙: 上海博物馆值得去", "丙: 我住在上海", "甲: 那就逛上海博物馆", "乙: 上海的小笼包", "丙: 上海博物馆周一闭馆",
		}, []string{"上海", "上海博物馆"}},
		{"what is done with it is no part of it", []string{
			"甲: 周末去吃火锅吗", "乙: 火锅太辣了", "丙: 想吃火锅", "甲: 那家火锅要排队",
		}, []string{"火锅"}},
		{"the commoner word, not the one with a little more", []string{
			"甲: 羽毛球", "乙: 打羽毛球", "丙: 羽毛球拍坏了", "甲: 打羽毛球", "乙: 买羽毛球", "丙: 羽毛球好玩",
		}, []string{"羽毛球"}},
		{"what hardly ever stands alone", []string{
			"甲: 买了鼠标垫和外套", "乙: 蓝牙耳机", "丙: 蓝牙耳机", "甲: 蓝牙耳机好用", "乙: 蓝牙耳机坏了", "丙: 修蓝牙耳机", "甲: 蓝牙音箱", "乙: 开蓝牙", "丙: 卖蓝牙耳机",
			"甲: 蓝牙耳机？",
		}, []string{"蓝牙耳机"}},
		{"what is said of it is no part of it", []string{
			"甲: 医生说多喝水", "乙: 问医生", "丙: 医生说没事", "甲: 换个医生", "乙: 医生说的",
		}, []string{"医生"}},
		{"a word that begins with what may be grammar", []string{
			"甲: 坐地铁去", "乙: 地铁站好远", "丙: 最近地铁很挤", "甲: 我对花生过敏", "乙: 过敏就别吃", "丙: 原来你也过敏啊",
		}, []string{"地铁", "过敏"}},
		{"a phrase of two words, and words as most people wrote them", []string{
			"ann: I am learning Machine Learning", "ben: machine learning is math", "cat: which machine learning course is it?",
			"ann: my cat hates the vacuum", "ben: Cats fear vacuums", "cat: poor cats", "ben: cats!",
		}, []string{"machine learning", "cats", "vacuum"}},
		{"both languages in one word or sentence", []string{
			"甲: 我在B站看到的", "乙: B站有个视频", "丙: 用Python写的", "甲: Python 好学吗", "乙: 学 python 吧", "丙: 你也上B站？",
		}, []string{"B站", "Python"}},
		{"traditional characters", []string{
			"甲: 颱風要來了", "乙: 颱風假！", "丙: 這個颱風很強",
		}, []string{"颱風"}},
		{"Japanese", []string{
			"a: ラーメンを食べたい", "b: ラーメンはどこですか", "c: この店のラーメンが好き",
		}, []string{"ラーメン"}},
		{"what everybody says everywhere", []string{
			"甲: 哈哈哈哈", "乙: 哈哈哈哈哈", "丙: 好的谢谢", "甲: 好的，谢谢大家", "乙: 你好", "丙: 你好呀", "甲: ok 嘿嘿嘿 呜呜", "乙: OK 嗯嗯 嘿嘿 呜呜呜", "丙: 嗯嗯 没事",
			"甲: lol haha", "乙: hahaha lol thanks", "丙: thanks, good morning", "甲: 没关系 233333", "乙: 没事 2333", "丙: 我觉得可以", "乙: 我觉得不错",
		}, nil},
		{"what nobody said", []string{
			`甲: <at id="123"/> [图片] https://example.com/shop/cheap`, `乙: <at id="123"/> [CQ:image,file=cat.png] https://example.com/shop/cheap`,
			"丙: @小明 [图片]", "甲: @小明", "乙: 2026-11-20 3点", "丙: 2026-11-20 3点",
		}, nil},
		{"said once", []string{"甲: 羽毛球羽毛球羽毛球", "乙: badminton", "丙: 晚上"}, nil},
		{"nothing", nil, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, _ := of(t, messages(test.lines...), nil, topics.Own)
			slices.Sort(got)
			want := slices.Sorted(slices.Values(test.want))
			if !slices.Equal(got, want) {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

func TestCountsMessages(t *testing.T) {
	now := messages("甲: 爬山爬山爬山", "甲: 爬山吗", "乙: 我不爬山", "丙: 游泳", "丙: 游泳好")
	before := messages("甲: 上次爬山好累", "丁: 爬山爬山", "乙: 篮球", "乙: 篮球赛")
	names, by := of(t, now, before, topics.Own)
	if got := by["爬山"]; got.Messages != 3 || got.Previous != 2 {
		t.Errorf("%+v", got)
	}
	if got := by["游泳"]; got.Messages != 2 || got.Previous != 0 {
		t.Errorf("%+v", got)
	}
	if slices.Contains(names, "篮球") {
		t.Errorf("a topic of the previous period is reported: %q", names)
	}
}

func TestRanking(t *testing.T) {
	talk := func(word string, speakers ...string) (lines []string) {
		for i, speaker := range speakers {
			lines = append(lines, fmt.Sprintf("%s: %d，%s，", speaker, i, word))
		}
		return lines
	}
	for _, test := range []struct {
		name        string
		now, before []string
		want        []string
	}{
		{"more messages", slices.Concat(talk("电影", "甲", "乙"), talk("篮球", "甲", "乙", "丙")), nil, []string{"篮球", "电影"}},
		{"more people rather than more messages", slices.Concat(
			talk("广告", "甲", "甲", "甲", "甲", "甲"), talk("篮球", "甲", "乙", "丙", "丁"),
		), nil, []string{"篮球", "广告"}},
		{"what is new rather than what is always said", slices.Concat(
			talk("上班", "甲", "乙", "丙", "丁"), talk("地震", "甲", "乙", "丙"),
		), talk("上班", "甲", "乙", "丙", "丁", "戊"), []string{"地震", "上班"}},
		{"a longer word", slices.Concat(talk("电影", "甲", "乙"), talk("图书馆", "甲", "乙")), nil, []string{"图书馆", "电影"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, by := of(t, messages(test.now...), messages(test.before...), topics.Own)
			if !slices.Equal(got, test.want) {
				t.Errorf("got %q, want %q: %v", got, test.want, by)
			}
		})
	}
}

// TestSharedTopicsNeedSeveralSpeakers: Words of a single person, however frequent, are not reported to callers who ask about all people.
func TestSharedTopicsNeedSeveralSpeakers(t *testing.T) {
	now := messages(
		"甲: 我得了糖尿病", "甲: 糖尿病不能吃糖", "甲: 糖尿病真难", "甲: 糖尿病",
		"甲: 世界杯开始了", "乙: 看世界杯", "丙: 世界杯决赛",
		"甲: 搬家", "乙: 搬家好累",
		// The two people used the same stem, but no common spelling.
		"甲: organs, organs!", "甲: my organs", "乙: organized",
	)
	if got, _ := of(t, now, nil, topics.Shared); !slices.Equal(got, []string{"世界杯"}) {
		t.Errorf("reported %q", got)
	}
	own, _ := of(t, now, nil, topics.Own)
	for _, want := range []string{"糖尿病", "世界杯", "搬家"} {
		if !slices.Contains(own, want) {
			t.Errorf("%q is not among %q", want, own)
		}
	}
}

func TestTopicsAreDeterministic(t *testing.T) {
	now := dialogue(500)
	first, err := topics.Of(t.Context(), now, now[:100], topics.Own, topics.MaxTopics)
	if err != nil || len(first) < 5 {
		t.Fatal(first, err)
	}
	for range 5 {
		again, err := topics.Of(t.Context(), now, now[:100], topics.Own, topics.MaxTopics)
		if err != nil || !reflect.DeepEqual(again, first) {
			t.Fatalf("%v, then %v, %v", first, again, err)
		}
	}
	some, err := topics.Of(t.Context(), now, now[:100], topics.Own, 3)
	if err != nil || !reflect.DeepEqual(some, first[:3]) {
		t.Errorf("three are %v, %v", some, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := topics.Of(ctx, now, nil, topics.Own, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// dialogue returns n different messages.
func dialogue(n int) (all []topics.Message) {
	who := []string{"甲", "乙", "丙", "ann", "ben"}
	what := []string{"火锅", "爬山", "人工智能", "机器学习", "天气预报", "猫粮", "coffee machine", "world cup", "climbing", "奶茶", "演唱会", "地铁站", "Python"}
	how := []string{"%s怎么样，第%d次问了", "我昨天又去看%s了，%d块钱", "what about %s number %d?", "说到%s我就想起来那年夏天的%d件小事", "I never liked %s in room %d anyway", "谁要%s？%d个人报名了"}
	for i := range n {
		all = append(all, topics.Message{Speaker: who[i%len(who)], Text: fmt.Sprintf(how[i%len(how)], what[i*i%len(what)], i)})
	}
	return all
}

// fakeSource returns its answers in turn and records the queries.
type fakeSource struct {
	asked   []topics.Query
	answers [][]topics.Message
	err     error
}

func (s *fakeSource) Messages(_ context.Context, q topics.Query) ([]topics.Message, bool, error) {
	s.asked = append(s.asked, q)
	return s.answers[len(s.asked)-1], len(s.asked) == 1, s.err
}

func TestCounter(t *testing.T) {
	end := time.Date(2026, 11, 20, 8, 0, 0, 0, time.UTC)
	source := &fakeSource{answers: [][]topics.Message{messages("甲: 爬山", "乙: 爬山", "丙: 爬山"), messages("甲: 爬山")}}
	report, err := topics.NewCounter(source).Count(t.Context(), topics.Query{Namespace: "test", Before: end}, 5)
	if err != nil || report.Messages != 3 || !report.Truncated || len(report.Topics) != 1 || report.Topics[0].Previous != 1 {
		t.Errorf("%+v, %v", report, err)
	}
	week := 7 * 24 * time.Hour
	for i, q := range source.asked {
		if want := end.Add(-time.Duration(i) * week); !q.Before.Equal(want) || !q.After.Equal(want.Add(-week)) || q.Namespace != "test" {
			t.Errorf("asked for %v to %v of %q", q.After, q.Before, q.Namespace)
		}
	}

	down := &fakeSource{answers: make([][]topics.Message, 1), err: memory.ErrUnavailable}
	if _, err := topics.NewCounter(down).Count(t.Context(), topics.Query{Before: end}, 5); !errors.Is(err, memory.ErrUnavailable) {
		t.Errorf("during a storage outage: %v", err)
	}
}

// TestCounterNeedsSeveralSpeakers: Words of a single person are reported only for a query of a session or a user, whose callers know the
// speakers.
func TestCounterNeedsSeveralSpeakers(t *testing.T) {
	said := messages("甲: 糖尿病", "甲: 糖尿病", "甲: 糖尿病")
	for _, test := range []struct {
		user, session string
		want          int
	}{{"", "", 0}, {"甲", "", 1}, {"", "s", 1}, {"乙", "s", 1}} {
		q := topics.Query{UserID: test.user, SessionID: test.session}
		q.Before = time.Date(2026, 11, 20, 8, 0, 0, 0, time.UTC)
		report, err := topics.NewCounter(&fakeSource{answers: [][]topics.Message{said, nil}}).Count(t.Context(), q, 5)
		if err != nil || len(report.Topics) != test.want {
			t.Errorf("%+v: %v, %v", test, report.Topics, err)
		}
	}
}

func TestCounterRefusesInvalidQueries(t *testing.T) {
	end := time.Date(2026, 11, 20, 8, 0, 0, 0, time.UTC)
	for _, test := range []struct {
		q     topics.Query
		limit int
		field string
	}{
		{topics.Query{Before: end}, 0, "max_topics"},
		{topics.Query{Before: end}, topics.MaxTopics + 1, "max_topics"},
		{topics.Query{After: end, Before: end}, 1, "after_time"},
		{topics.Query{After: end.AddDate(-101, 0, 0), Before: end}, 1, "after_time"},
		{topics.Query{After: end, Before: end.AddDate(10000, 0, 0)}, 1, "before_time"},
	} {
		_, err := topics.NewCounter(&fakeSource{}).Count(t.Context(), test.q, test.limit)
		invalid := (*memory.InvalidError)(nil)
		if !errors.As(err, &invalid) || invalid.Violations[0].Field != test.field {
			t.Errorf("%+v, %d: %v, want one about %s", test.q, test.limit, err, test.field)
		}
	}
}

func BenchmarkOf(b *testing.B) {
	now := dialogue(topics.MaxMessages)
	for b.Loop() {
		if _, err := topics.Of(b.Context(), now, now, topics.Own, topics.DefaultTopics); err != nil {
			b.Fatal(err)
		}
	}
}
