package rules

import (
	"slices"
	"testing"

	"github.com/memsidecar/memsidecar/internal/memory"
)

// split are the texts to be remembered and those to be forgotten.
func split(list []memory.Statement) (kept, forgotten []string) {
	for _, s := range list {
		if s.Forget {
			forgotten = append(forgotten, s.Text)
		} else {
			kept = append(kept, s.Text)
		}
	}
	return kept, forgotten
}

func TestForgets(t *testing.T) {
	r := newRules(t, Config{})
	for words, want := range map[string]string{
		"Forget that I live in Rome":                               "The user lives in Rome.",
		"please forget that my sister is a nurse.":                 "The user's sister is a nurse.",
		"Forget what I told you about my ex":                       "The user's ex.",
		"Could you forget everything I said about my boss, please": "The user's boss.",
		"Please delete what you know about my ex":                  "The user's ex.",
		"Can you delete everything you remember about my divorce?": "The user's divorce.",
		"don't remember my address any more":                       "The user's address.",
		"I want you to forget my phone number":                     "The user's phone number.",
		"Erase my birthday from your memory":                       "The user's birthday.",
		"Stop remembering that I like cilantro":                    "The user likes cilantro.",
		"forget about the stuff I mentioned about Anna":            "Anna.",
		"忘掉我说过我喜欢猫":                                                "用户喜欢猫",
		"请忘掉我跟你说的关于前男友的事":                                          "用户的前男友的事",
		"忘了关于考研的事吧":                                                "考研的事",
		"忘掉我的地址":                                                   "用户的地址",
		"请你忘记我住在北京这件事":                                             "用户住在北京",
		"别再记我的工资了":                                                 "用户的工资",
		"不要再记住我喜欢吃辣":                                               "用户喜欢吃辣",
		"不用记得我的生日了":                                                "用户的生日",
		"把关于我前女友的记忆删掉":                                             "用户的前女友",
		"把我的手机号从你的记忆里删掉吧":                                          "用户的手机号",
		"删掉你关于我工作的记忆":                                              "用户工作",
		"能不能忘掉我的体重？":                                               "用户的体重",
		"忘了我前女友的事吧":                                                "用户的前女友的事",
	} {
		v, s := consider(t, r, talk(words))
		kept, forgotten := split(s)
		if !slices.Equal(forgotten, []string{want}) || len(kept) > 0 || !v.Explicit {
			t.Errorf("%q: keeps %q, forgets %q, explicit %v; want %q forgotten (%s)", words, kept, forgotten, v.Explicit, want, v.Reason)
			continue
		}
		if s[0].Quote == "" || !slices.Equal(s[0].MessageIDs, []string{"#0"}) || s[0].Language == "" {
			t.Errorf("%q: no evidence in %+v", words, s[0])
		}
	}
}

func TestForgetsNothing(t *testing.T) {
	r := newRules(t, Config{})
	for _, words := range []string{
		"I forgot my keys at my sister's house", "我忘了带伞", "don't forget to buy milk", "别忘了我对花生过敏", "I can't forget her", "忘不了我前女友",
		"I'll never forget my wedding", "I want to forget my ex", "我想忘掉前男友", "不要忘记我的生日是5月3日", "Don't forget my birthday", "老公忘了我的生日",
		"忘记我是谁了", "Forget about it, I live in Rome now", "Delete my last message", "把这段代码删掉", "Don't remember this: my PIN is 1234",
		"别记这个，我的密码是1234", "I live in Rome, but don't save this", "忘掉一个人要多久？", "Forget everything", "别再记错了", "把我的名字写上", "忘了我的伞在哪了",
		"Do you ever forget what I told you about my ex?", "My boss told me to forget my vacation", "我住在上海。\n别记住这个。",
	} {
		_, s := consider(t, r, talk(words))
		if _, forgotten := split(s); len(forgotten) > 0 {
			t.Errorf("%q: forgets %q", words, forgotten)
		}
	}
}

func TestTakesBack(t *testing.T) {
	r := newRules(t, Config{})
	for name, c := range map[string]struct {
		lines           []string
		kept, forgotten []string
		refs            []string // of the first to be forgotten
	}{
		"in the same message": {[]string{"I live in Rome. Forget that."}, nil, []string{"The user lives in Rome."}, []string{"#0"}},
		"the message before":  {[]string{"我对花生过敏", "A: 好的", "别记这个"}, nil, []string{"用户对花生过敏"}, []string{"#0", "#2"}},
		"the sentence before": {[]string{"我住在上海。我养了一只猫。", "A: 好的", "刚才那句别记了"}, nil, []string{"用户养了一只猫"}, []string{"#0", "#2"}},
		"all of it":           {[]string{"我住在上海。我养了一只猫。", "A: 好的", "忘掉我刚才说的"}, nil, []string{"用户住在上海", "用户养了一只猫"}, []string{"#0", "#2"}},
		"all that was said":   {[]string{"我住在上海。我养了一只猫。", "A: 好的", "把我之前说的都忘掉"}, nil, []string{"用户住在上海", "用户养了一只猫"}, []string{"#0", "#2"}},
		"past thanks": {
			[]string{"I have two cats", "thanks", "forget what I said"},
			nil,
			[]string{"The user has two cats."},
			[]string{"#0", "#2"},
		},
		"what was asked to remember": {
			[]string{"Remember that I park on B2", "A: ok", "Forget that"},
			nil,
			[]string{"The user parks on B2."},
			[]string{"#0", "#2"},
		},
		"nothing was said": {[]string{"刚才说的别记了"}, nil, nil, nil},
		"another's words":  {[]string{"B: I live in Rome", "Forget that"}, nil, nil, nil},
		"named, and said here": {
			[]string{"I live in Rome", "A: Nice", "Forget that I live in Rome"},
			nil,
			[]string{"The user lives in Rome."},
			[]string{"#2"},
		},
		"other things stay": {[]string{"忘掉我的旧地址，我现在住在杭州"}, []string{"用户现在住在杭州"}, []string{"用户的旧地址"}, []string{"#0"}},
		"and a new fact": {
			[]string{"Forget that I live in Rome. I moved to Oslo."},
			[]string{"The user moved to Oslo."},
			[]string{"The user lives in Rome."},
			[]string{"#0"},
		},
		"twice changes nothing":         {[]string{"I live in Rome. Forget that. Forget that."}, nil, []string{"The user lives in Rome."}, []string{"#0"}},
		"the days of a taken-back plan": {[]string{"我明天要去面试", "A: 加油", "忘掉刚才那句"}, nil, []string{"用户2026年3月5日要去面试"}, []string{"#0", "#2"}},
	} {
		t.Run(name, func(t *testing.T) {
			v, s := consider(t, r, talk(c.lines...))
			kept, forgotten := split(s)
			if !slices.Equal(kept, c.kept) || !slices.Equal(forgotten, c.forgotten) {
				t.Fatalf("keeps %q, forgets %q; want %q and %q (%s)", kept, forgotten, c.kept, c.forgotten, v.Reason)
			}
			for _, x := range s {
				if x.Forget {
					if !slices.Equal(x.MessageIDs, c.refs) {
						t.Errorf("cites %v, want %v", x.MessageIDs, c.refs)
					}
					break
				}
			}
		})
	}
}
