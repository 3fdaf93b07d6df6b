package rules

import (
	"slices"
	"testing"
)

// Who is introduced in two breaths is remembered by name and relation, and what is said next is said of them.
func TestIntroductions(t *testing.T) {
	r := newRules(t, Config{})
	for _, c := range []said{
		{"他叫小明，是我弟弟", []string{"他叫小明，是用户的弟弟"}},
		{"她叫莉莉，是我女朋友，在医院上班", []string{"她叫莉莉，是用户的女朋友，在医院上班"}},
		{"他叫王强。是我邻居。养了三只狗。", []string{"他叫王强。是用户的邻居。养了三只狗"}},
		{"它叫旺财，是我的狗", []string{"它叫旺财，是用户的狗"}},
		{"小明，我弟弟，在上海读书", []string{"小明，用户的弟弟，在上海读书"}},
		{"他叫小明，是我弟弟，我在北京工作", []string{"他叫小明，是用户的弟弟", "用户在北京工作"}},
		{"我有个妹妹，在北京读书，叫小雅", []string{"用户有个妹妹，在北京读书，叫小雅"}},
		{"我有个同事叫李雷，做前端的", []string{"用户有个同事叫李雷，做前端的"}},
		{"我妹妹叫小雨。住在北京。喜欢画画。", []string{"用户的妹妹叫小雨。住在北京。喜欢画画"}},
		{"我养了一只猫，对鸡肉过敏", []string{"用户养了一只猫，对鸡肉过敏"}},

		{"my sister's name is Ann, she's a nurse", []string{"The user's sister's name is Ann, she's a nurse."}},
		{"that's Bob, he is my boss", []string{"Bob is the user's boss."}},
		{"That's Bob. He's my boss. He lives in Leeds.", []string{"Bob is the user's boss. He lives in Leeds."}},
		{"This is Bob Smith, my boss", []string{"Bob Smith is the user's boss."}},
		{"Her name is Mia, she's my daughter", []string{"Mia is the user's daughter."}},
		{"His name is Max and he is my son", []string{"Max is the user's son."}},
		{"Meet Luna, my cat", []string{"Luna is the user's cat."}},
		{"Anna, my sister, lives in Rome", []string{"Anna, the user's sister, lives in Rome."}},
		{"She is a nurse, my sister Ann", []string{"She is a nurse, the user's sister Ann."}},
		{"that's Bob, he is my boss and I like him", []string{"Bob is the user's boss and they like him."}},

		// Nobody is introduced here.
		{"我喜欢吃辣。住在北京。", []string{"用户喜欢吃辣", "用户住在北京"}},
		{"我养了一只猫，住在北京", []string{"用户养了一只猫", "用户住在北京"}},
		{"我养了一只猫。喜欢爬山。", []string{"用户养了一只猫", "用户喜欢爬山"}},
		{"我和我妹妹住在一起。喜欢吃辣。", []string{"用户和用户的妹妹住在一起", "用户喜欢吃辣"}},
		{"昨天，我弟弟结婚了", []string{"2026年3月3日，用户的弟弟结婚了"}},
		{"他叫什么，是我弟弟", []string{"是用户的弟弟"}},
		{"That's great. He is my boss.", []string{"He is the user's boss."}},
	} {
		v, s := consider(t, r, talk(c.words))
		if got := texts(s); !slices.Equal(got, c.want) {
			t.Errorf("%q\n got %q\nwant %q\n%s", c.words, got, c.want, v.Reason)
		}
	}
}

// An introduction may take two messages; both are cited.
func TestIntroducedInTheMessageBefore(t *testing.T) {
	r := newRules(t, Config{})
	for _, c := range []struct {
		lines []string
		want  string
		cited int
	}{
		{[]string{"他叫小明", "是我弟弟"}, "他叫小明，是用户的弟弟", 2},
		{[]string{"that's Bob", "he's my boss"}, "Bob is the user's boss.", 2},
		{[]string{"that's Bob", "A: Who is Bob?", "he's my boss"}, "He's the user's boss.", 1},
		{[]string{"that's Bob", "B: who?", "he's my boss"}, "He's the user's boss.", 1},
		{[]string{"don't remember this: that's Bob", "he's my boss"}, "He's the user's boss.", 1},
	} {
		v, s := consider(t, r, talk(c.lines...))
		if len(s) != 1 || s[0].Text != c.want || len(s[0].MessageIDs) != c.cited {
			t.Errorf("%q: got %+v (%s), want %q citing %d messages", c.lines, s, v.Reason, c.want, c.cited)
		}
	}
}

// What is said around a statement, and how it is set, is no part of it.
func TestWording(t *testing.T) {
	r := newRules(t, Config{})
	for _, c := range []said{
		{"I really like J.J. Watson's films", []string{"The user really likes J.J. Watson's films."}},
		{"I live in the U.S. My sister lives in Rome.", []string{"The user lives in the U.S.", "The user's sister lives in Rome."}},
		{"Like how much I enjoy listening to Bach.", []string{"The user enjoys listening to Bach."}},
		{"For example, I used to dislike golf, but now I love it.", []string{"The user used to dislike golf, but now they love it."}},
		{"I just remembered how much I *love* kayaking!", []string{"The user just remembered how much they love kayaking."}},
		{
			"I used to dislike the Alps, but after seeing some photos, my opinion has completely changed.",
			[]string{"The user used to dislike the Alps, but after seeing some photos, their opinion has completely changed."},
		},
		{"Finally, I moved to Oslo with my wife.", []string{"The user moved to Oslo with their wife."}},
		{"I enjoyed chatting with you and I'm glad to meet you.", nil},
		{"I'm really grateful to you, you always cheer me up.", nil},
		{"I feel lost at work and I was hoping to get some advice from you.", nil},
		{"I wanted to tell you I'm pregnant.", []string{"The user is pregnant."}},
		{"I'm grateful to my wife for looking after the kids.", []string{"The user is grateful to their wife for looking after the kids."}},
		{"I want to learn these skills.", nil},
		{"My two cousins play chess these days.", []string{"The user's two cousins play chess these days."}},
		{"I used to like Bach a lot, but lately, what do you think?", []string{"The user used to like Bach a lot."}},
	} {
		v, s := consider(t, r, talk(c.words))
		if got := texts(s); !slices.Equal(got, c.want) {
			t.Errorf("%q\n got %q\nwant %q\n%s", c.words, got, c.want, v.Reason)
		}
	}
}
