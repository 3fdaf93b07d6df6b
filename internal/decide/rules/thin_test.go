package rules

import (
	"slices"
	"testing"
)

// A statement in which nothing is named goes; one word of content, or a taste, a duty or a trouble that lasts, keeps it.
func TestThin(t *testing.T) {
	r := newRules(t, Config{})
	for _, words := range []string{
		"I hope to find something better.", "I want to become a better person.", "I feel lost and don't know what to do.",
		"I saw a film and it was wonderful.",
		"Today I'd love to do something fun.", "I'm not sure yet, but I'm looking forward to it.", "I spent an hour watching one of my favorite movies.",
		"I really enjoy that feeling.", "I feel like I'm about to cry.", "I want to take a walk.", "I'm in the kitchen now.",
		"It doesn't seem to be working for me.",
		"我想让自己变得更好。", "我很享受这个过程。", "我相信自己能克服困难。", "我想找点有意思的事情做。", "我看了一部电影，很感人。", "我想去散散步。",
	} {
		if v, s := consider(t, r, talk(words)); v.Remember {
			t.Errorf("%q is remembered as %q: %s", words, texts(s), v.Reason)
		}
	}
	for _, words := range []string{
		"I hope to find a better job.", "I want to become a nurse.", "I love to read.", "I like being alone.", "I'm afraid of failure.",
		"I feel lonely since my divorce.",
		"I've been so stressed for months.", "I need to plan my weekend.", "I'm a morning person.",
		"I saw a film with my wife and it was wonderful.", "I'm in the army now.",
		"My favorite movies are from Iran.", "I want to learn to swim.", "I'm about to move to Oslo.",
		"我喜欢一个人生活。", "我害怕失败。", "我想要孩子。", "我一直很自卑。", "我想学游泳。", "我和老婆看了一部电影，很感人。", "我喜欢看书。",
	} {
		if v, _ := consider(t, r, talk(words)); !v.Remember {
			t.Errorf("%q is not remembered: %s", words, v.Reason)
		}
	}
}

// How a statement reads: nothing hangs on it that is not the matter, nothing is cut off, and whose it is stays right.
func TestReads(t *testing.T) {
	r := newRules(t, Config{})
	for words, want := range map[string][]string{
		"My name is Oona and I'm glad to meet you.":             {"The user's name is Oona."},
		"That sounds great, but my shifts end at midnight.":     {"The user's shifts end at midnight."},
		"Besides rye, I also love baking with spelt.":           {"Besides rye, the user also loves baking with spelt."},
		"There is a leak in my kitchen and I need to move out.": {"There is a leak in the user's kitchen and they need to move out."},
		"我叫阿岚，很高兴认识你。":                                          {"用户叫阿岚"},
		"听起来不错，但是我的腰不好。":                                        {"用户的腰不好"},
		"我在纠结要不要考研，你觉得我应该怎么选？":                                  {"用户在纠结要不要考研"},
		"我想学游泳，你有没有什么课程可以推荐给我？":                                 {"用户想学游泳"},
		"每次都有人要我做红烧肉给他们吃。":                                      {"每次都有人要用户做红烧肉给他们吃"},
		"每次和你聊天都很有收获。":                                          nil,
		"我弟弟小我五岁，在部队。":                                          {"用户的弟弟小用户五岁，在部队"},
		"我的手艺来自我的外婆。":                                           {"用户的手艺来自用户的外婆"},
		"我想我会辞职，因为老板太苛刻。":                                       {"用户会辞职，因为老板太苛刻"},
		"可我真的很害怕蛇。":                                             {"用户真的很害怕蛇"},
		"我大姨下个月来看病。":                                            {"用户的大姨2026年4月来看病"},
		"我月末要搬去苏州。":                                             {"用户2026年3月末要搬去苏州"},
	} {
		if _, s := consider(t, r, talk(words)); !slices.Equal(texts(s), want) {
			t.Errorf("%q: got %q, want %q", words, texts(s), want)
		}
	}
}
