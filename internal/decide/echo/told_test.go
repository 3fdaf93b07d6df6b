package echo_test

import (
	"testing"

	"github.com/memsidecar/memsidecar/internal/decide/echo"
)

func TestTold(t *testing.T) {
	for _, test := range []struct {
		sentence, memory string
		told             bool
	}{
		// The same, to somebody and in other words.
		{"你喜欢猫", "用户喜欢猫", true},
		{"看来你很喜欢猫呢，对吧？", "用户喜欢猫", true},
		{"你不是喜欢猫吗？", "用户喜欢猫", true},
		{"你住在北京，对吧？", "用户住在北京。", true},
		{"我记得你是住在北京的", "用户居住在北京", true},
		{"妳喜歡貓嗎？", "用户喜欢猫", true},
		{"你对花生过敏", "用户对花生过敏。", true},
		{"用户喜欢猫", "用户喜欢猫。", true},
		{"You like cats, right?", "The user likes cats.", true},
		{"I remember that you love cats!", "The user likes cats.", true},
		{"You are a big fan of cats, aren't you?", "The user likes cats.", true},
		{"So you live in Berlin.", "The user lives in Berlin.", true},
		{"You're allergic to peanuts", "The user is allergic to peanuts.", true},
		{"You like cats", "The user likes cats and dogs.", true},

		// Something new, or something else.
		{"你养猫吗？", "用户喜欢猫", false},
		{"你不喜欢猫", "用户喜欢猫", false},
		{"你住在上海，对吧？", "用户住在北京。", false},
		{"你妈妈住在北京，对吧？", "用户住在北京。", false},
		{"你住在北京", "用户的妹妹住在北京", false},
		{"你养了两只猫", "用户养了三只猫", false},
		{"你想搬到北京", "用户搬到了北京", false},
		{"You like dogs, right?", "The user likes cats.", false},
		{"You don't like cats", "The user likes cats.", false},
		{"You live in Berlin", "The user used to live in Berlin.", false},
		{"You live in Berlin", "The user's sister lives in Berlin.", false},
		{"You live in Berlin with Anna", "The user lives in Berlin.", false},
		{"You moved to Berlin", "The user wants to move to Berlin.", false},
		{"You have two cats", "The user has three cats.", false},
		{"That's great!", "The user likes cats.", false},
		{"", "用户喜欢猫", false},
	} {
		if got := echo.Told(test.sentence, test.memory); got != test.told {
			t.Errorf("Told(%q, %q) is %v", test.sentence, test.memory, got)
		}
	}
}

func TestNear(t *testing.T) {
	for _, test := range []struct {
		sentence, memory string
		near             bool
	}{
		{"你住在上海", "用户住在上海浦东", true},
		{"You live in Shanghai with two cats", "The user lives in Beijing with two cats.", true},
		{"你喜欢猫", "用户对花生过敏", false},
		{"What a day!", "The user likes cats.", false},
	} {
		if got := echo.Near(test.sentence, test.memory); got != test.near {
			t.Errorf("Near(%q, %q) is %v", test.sentence, test.memory, got)
		}
	}
}

func TestReplyOf(t *testing.T) {
	for want, texts := range map[echo.Reply][]string{
		echo.Affirm:      {"对", "对的！", "是的，没错", "嗯，对", "yes", "Yes, right.", "yep that's correct", "对对对", "yeah 👍"},
		echo.Acknowledge: {"嗯", "嗯嗯", "好的，谢谢", "哦", "ok", "Okay, thanks!", "👍", "", "haha", "哈哈哈", "收到。", "Sounds good"},
		echo.Words: {
			"对，我住在上海", "不对", "yes, Friday at 3 works", "好，就周五三点", "no", "I like cats", "是北京", "三点", "3", "猫", "yes, but not on Monday",
			"嗯，我对花生过敏",
		},
	} {
		for _, text := range texts {
			if got := echo.ReplyOf(text); got != want {
				t.Errorf("%q is %d, want %d", text, got, want)
			}
		}
	}
}

func TestAsks(t *testing.T) {
	for text, want := range map[string]bool{
		"你喜欢猫，对吧？": true, "你喜欢猫对吧": true, "那周五三点见？": true, "You like cats, right?": true, "So Friday?": true,
		"你喜欢猫。": false, "You like cats.": false, "Is it? I think so.": false, "": false,
	} {
		if got := echo.Asks(text); got != want {
			t.Errorf("%q asks: %v", text, got)
		}
	}
}
