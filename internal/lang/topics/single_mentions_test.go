package topics_test

import (
	"slices"
	"testing"
	"time"

	"github.com/memsidecar/memsidecar/internal/lang/topics"
)

// TestTopicsSaidOnce: For a digest, a noun that was said once is a topic. Verbs, small talk and function words are not.
func TestTopicsSaidOnce(t *testing.T) {
	for text, want := range map[string][]string{
		"我昨天买了一台咖啡机":                             {"咖啡机"},
		"数据库的索引怎么建？":                             {"数据库", "索引"},
		"帮我看看这台电脑的键盘":                            {"电脑", "键盘"},
		"你好，谢谢你":                                 nil,
		"我觉得还可以吧":                                nil,
		"跑起来很快":                                  nil,
		"What is the best recipe for sourdough?": {"sourdough"},
		"I finally repaired my bicycle":          {"bicycle"},
		"Does Terraform support this backend?":   {"backend"},
		"Thanks, that was great!":                nil,
		"I think so too":                         nil,
	} {
		end := time.Date(2026, 11, 20, 8, 0, 0, 0, time.UTC)
		source := &fakeSource{answers: [][]topics.Message{{{Speaker: "u", Text: text}}, nil}}
		report, err := topics.NewCounter(source).Count(t.Context(), topics.Query{UserID: "u", Once: true, Before: end}, 5)
		if err != nil {
			t.Fatal(err)
		}
		if len(report.Topics) != 0 {
			t.Errorf("%s: %+v was said only once", text, report.Topics)
		}
		for _, w := range want {
			if !slices.Contains(report.Once, w) {
				t.Errorf("%s: %q, want %q", text, report.Once, want)
			}
		}
		if len(want) == 0 && len(report.Once) != 0 {
			t.Errorf("%s: %q, want none", text, report.Once)
		}
	}
	// Words of a single person are not reported to callers who ask about all people.
	source := &fakeSource{answers: [][]topics.Message{messages("甲: 我买了咖啡机"), nil}}
	if report, err := topics.NewCounter(source).Count(t.Context(), topics.Query{Once: true, Before: time.Now()}, 5); err != nil || len(report.Once) != 0 {
		t.Errorf("reported %q (%v)", report.Once, err)
	}
}
