package rules

import (
	"slices"
	"testing"

	"github.com/memsidecar/memsidecar/internal/memory"
)

// In a group nobody knows who "we" and "you" are: such words are told as they were said.
func TestGroups(t *testing.T) {
	r := newRules(t, Config{})
	for words, want := range map[string]struct{ direct, group string }{
		"我们打算换服务器":                  {"用户打算换服务器", "用户说：“我们打算换服务器”"},
		"我们公司在上海":                   {"用户的公司在上海", "用户的公司在上海"},
		"我和老婆打算换房子，因为我们喜欢安静":        {"用户和老婆打算换房子，因为用户喜欢安静", "用户和老婆打算换房子，因为用户喜欢安静"},
		"我打算和你们一起去北京":               {"用户说：“我打算和你们一起去北京”", "用户说：“我打算和你们一起去北京”"},
		"我按你的建议戒烟了":                 {"用户按助手的建议戒烟了", "用户说：“我按你的建议戒烟了”"},
		"咱家养了三只鸡":                   {"用户家养了三只鸡", "用户家养了三只鸡"},
		"咱打算换服务器":                   {"用户打算换服务器", "用户说：“咱打算换服务器”"},
		"咱们打算换服务器":                  {"用户说：“咱们打算换服务器”", "用户说：“咱们打算换服务器”"},
		"我最喜欢和用户聊天":                 {"用户说：“我最喜欢和用户聊天”", "用户说：“我最喜欢和用户聊天”"},
		"@阿明 我对花生过敏":                {"用户对花生过敏", "用户对花生过敏"},
		"我喜欢爬山，请给我推荐几条路线":           {"用户喜欢爬山", "用户喜欢爬山"},
		"We have two cats":          {"The user has two cats.", `The user said: "We have two cats"`},
		"My wife and I love Oslo":   {"The user and their wife love Oslo.", "The user and their wife love Oslo."},
		"Our dog is called Rex":     {"The user's dog is called Rex.", "The user's dog is called Rex."},
		"I love you guys":           {"", ""},
		"I plan to sail with you":   {`The user said: "I plan to sail with you"`, `The user said: "I plan to sail with you"`},
		"@Kim my birthday is May 3": {"The user's birthday is May 3.", "The user's birthday is May 3."},
	} {
		for kind, text := range map[memory.ChannelKind]string{memory.ChannelDirect: want.direct, memory.ChannelGroup: want.group} {
			tr := talk(words)
			tr.Dialogue.Scope.Channel = memory.Channel{Kind: kind, ID: "c"}
			_, s := consider(t, r, tr)
			var wants []string
			if text != "" {
				wants = []string{text}
			}
			if got := texts(s); !slices.Equal(got, wants) {
				t.Errorf("%q, %v: got %q, want %q", words, kind, got, text)
			}
		}
	}
	if _, s := consider(t, r, talk("B: 你好", "我们打算换服务器")); len(s) != 1 || s[0].Text != "用户说：“我们打算换服务器”" {
		t.Errorf("two people talk, and %q", texts(s))
	}
	if _, s := consider(t, r, talk("我想告诉你我上周去了成都")); len(s) != 1 || s[0].Text != "用户想告诉助手用户2026年2月23日那周去了成都" {
		t.Errorf("got %q", texts(s))
	}
}
