package rules

import (
	"slices"
	"testing"
)

// A statement about something unnamed is told with the sentence that names it, or has to tell more.
func TestHanging(t *testing.T) {
	r := newRules(t, Config{})
	for _, c := range []said{
		{"I want to learn from him", nil},
		{"I like it a lot in winter", nil},
		{"I really like the actors and the plot", nil},
		{"I've been working in this field for years", nil},
		{"这个问题会影响我的工作", nil},
		{"我已经在这个行业中工作了一段时间", nil},
		{"我喜欢它的味道", nil},
		{"That sounds nice. I want to learn from him.", nil},
		{
			"I want to learn from him, he lives in my street in Oslo and repairs violins for 3 orchestras",
			[]string{"The user wants to learn from him, he lives in their street in Oslo and repairs violins for 3 orchestras."},
		},

		{"I have a new boss called Ann. I want to learn from her.", []string{"The user has a new boss called Ann. They want to learn from her."}},
		{"There is a new coach called Wang at the gym. I want to learn from him.", []string{"There is a new coach called Wang at the gym. " +
			"The user wants to learn from him."}},
		{"健身房来了一位新教练王强。我很想跟他学游泳。", []string{"健身房来了一位新教练王强。用户很想跟他学游泳"}},

		{"I find it hard to make friends", []string{"The user finds it hard to make friends."}},
		{"I like it when my kids cook", []string{"The user likes it when their kids cook."}},
		{"I want to make it to the national team", []string{"The user wants to make it to the national team."}},
		{"It's been ten years since I moved to Spain", []string{"It's been ten years since the user moved to Spain."}},
		{"She is my best friend", []string{"She is the user's best friend."}},
		{"When he was three, my son broke his arm", []string{"When he was three, the user's son broke his arm."}},
		{"I love cooking because it calms me", []string{"The user loves cooking because it calms them."}},
		{"I work at a bank and it stresses me out", []string{"The user works at a bank and it stresses them out."}},
		{"My dog is ten and he loves me", []string{"The user's dog is ten and he loves them."}},
		{"我在学钢琴，这个爱好让我很放松", []string{"用户在学钢琴，这个爱好让用户很放松"}},
		{"我喜欢跑步，因为它能让我放松", []string{"用户喜欢跑步，因为它能让用户放松"}},
		{"我喜欢这种安静的生活", []string{"用户喜欢这种安静的生活"}},
		{"我的作品入选了今天的展览", []string{"用户的作品入选了2026年3月4日的展览"}},
		{"他是我的同事", []string{"他是用户的同事"}},
		{"这是我女儿", []string{"这是用户的女儿"}},
	} {
		v, s := consider(t, r, talk(c.words))
		if got := texts(s); !slices.Equal(got, c.want) {
			t.Errorf("%q\n got %q\nwant %q\n%s", c.words, got, c.want, v.Reason)
		}
	}
}

// What is over and has nothing in it goes; one word of what, where or with whom of one's own keeps it.
func TestPassing(t *testing.T) {
	r := newRules(t, Config{})
	for words, kept := range map[string]bool{
		"The weather was nice and I went out":                  false,
		"I went for a slow walk by myself":                     false,
		"I watched a movie with my friends":                    false,
		"I learned a lot and how to better manage my emotions": false,
		"我出去逛了一圈":                                              false,
		"天气很好，我一个人出去走了走":                                       false,
		"我跟朋友看了一场电影":                                           false,

		"I went out with my wife to the opera":             true,
		"I watched a movie about penguins with my sister":  true,
		`I watched "Heat" yesterday`:                       true,
		"I learned how to weld from my uncle":              true,
		"我和老婆出去逛了一圈":                                       true,
		"我和朋友看了《活着》":                                       true,
		"我去杭州逛了一圈":                                         true,
		"I walked from Porto to Santiago with my daughter": true,
	} {
		if v, s := consider(t, r, talk(words)); v.Remember != kept {
			t.Errorf("%q: remembered is %v, as %q: %s", words, v.Remember, texts(s), v.Reason)
		}
	}
}

// Said on Wednesday, March 4th 2026.
func TestDaysSaidTwice(t *testing.T) {
	r := newRules(t, Config{})
	for _, c := range []said{
		{"Today is Sunday and I plan to visit my mother", []string{"On 2026-03-04 (Wednesday) the user plans to visit their mother."}},
		{"It's Sunday today and I'm going to visit my mother", []string{"On 2026-03-04 (Wednesday) the user is going to visit their mother."}},
		{"今天是周日，我要和妻子去爬山", []string{"用户要和妻子去爬山"}},
		{"我每周都会在周末去打球", []string{"用户每周都会在周末去打球"}},
		{"I always visit my mother on the weekend", []string{"The user always visits their mother on the weekend."}},
		{"I visit my mother on the weekend", []string{"The user visits their mother on the weekend of 2026-03-07."}},
		{"那今天晚上我要去看演唱会", []string{"2026年3月4日晚上用户要去看演唱会"}},
		{"Hello friend today I got promoted at my company", []string{"On 2026-03-04 (Wednesday) the user got promoted at their company."}},
		{"亲爱的朋友今天我升职了", []string{"2026年3月4日用户升职了"}},
	} {
		v, s := consider(t, r, talk(c.words))
		if got := texts(s); !slices.Equal(got, c.want) {
			t.Errorf("%q\n got %q\nwant %q\n%s", c.words, got, c.want, v.Reason)
		}
	}
}

// The two who speak are named in every half of a wish.
func TestWishNamesBoth(t *testing.T) {
	r := newRules(t, Config{})
	for _, c := range []said{
		{"希望你每次和我聊天都用中文", []string{"用户希望助手每次和用户聊天都用中文"}},
		{"希望每次和你聊天都能用中文", []string{"用户希望每次和助手聊天都能用中文"}},
		{"希望每次和你聊天都能让我开心", []string{"用户希望每次和助手聊天都能让用户开心"}},
	} {
		v, s := consider(t, r, talk(c.words))
		if got := texts(s); !slices.Equal(got, c.want) {
			t.Errorf("%q\n got %q\nwant %q\n%s", c.words, got, c.want, v.Reason)
		}
	}
}
