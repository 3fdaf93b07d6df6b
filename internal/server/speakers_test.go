package server_test

import (
	"slices"
	"strings"
	"testing"

	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"

	"github.com/memsidecar/memsidecar/internal/testkit/sidecartest"
)

// room is a group in which several people talk in one dialogue.
type room struct {
	*sidecartest.Sidecar
	id string
}

// consider considers a dialogue of the room, waits for all speakers' outcomes, and returns the memories of each.
func (g room) consider(t *testing.T, messages ...*memsidecarv1.Message) map[string][]string {
	t.Helper()
	memories := map[string][]string{}
	for _, m := range messages {
		if m.GetRole() == memsidecarv1.Role_ROLE_USER {
			memories[m.GetSpeakerId()] = nil
		}
	}
	g.Consider(t, sidecartest.Group(messages[0].GetSpeakerId(), g.id), messages...)
	for who := range memories {
		g.Consider(t, sidecartest.Group(who, g.id), sidecartest.Said("早上好")) // queued after it, and no answer to anything
		for _, m := range g.Memories(t, sidecartest.Group(who, g.id)) {
			memories[who] = append(memories[who], m.GetText())
			if m.GetProvenance().GetSpeakerId() != who || m.GetScope().GetUserId() != who {
				t.Errorf("%s has statements of %s: %v", who, m.GetProvenance().GetSpeakerId(), m)
			}
		}
	}
	return memories
}

// TestStatementBelongsToItsSpeaker: In a group a statement becomes a memory of its speaker only.
func TestStatementBelongsToItsSpeaker(t *testing.T) {
	t.Parallel()
	r := sidecartest.Serve(t, "digest.interval=0") // a digest could cover several cases
	for name, test := range map[string]struct {
		dialogue []*memsidecarv1.Message
		want     map[string]string // words by owner; the other users have no memories
	}{
		"five at once": {
			[]*memsidecarv1.Message{
				by("小王", "我对花生过敏。"), by("小李", "我住在上海，在一家医院当护士。"), by("小张", "我下周三下午三点要去面试。"),
				by("小赵", "我女儿叫朵朵，今年五岁。"), by("小陈", "我每周都打羽毛球。"),
			},
			map[string]string{"小王": "花生", "小李": "上海", "小张": "面试", "小赵": "朵朵", "小陈": "羽毛球"},
		},
		"five at once in English": {
			[]*memsidecarv1.Message{
				by("wang", "I am allergic to peanuts."), by("li", "I work as a nurse in Shanghai."),
				by("zhang", "I have a job interview next Wednesday at 3pm."), by("zhao", "My daughter's name is Dora."),
				by("chen", "I love badminton."),
			},
			map[string]string{"wang": "peanuts", "li": "Shanghai", "zhang": "interview", "zhao": "Dora", "chen": "badminton"},
		},
		// Statements about others in the room are hearsay and are not remembered.
		"about each other": {
			[]*memsidecarv1.Message{by("小王", "小李住在上海。"), by("小李", "哈哈"), by("小赵", "小王，你喜欢喝茶吧？")}, nil,
		},
		"about each other in English": {
			[]*memsidecarv1.Message{
				by("zhang", "Zhao likes wine."), by("li", "lol"), by("zhao", "You live in Porto, right?"),
			}, nil,
		},
		// Unless they are also about the speaker.
		"about one's own people": {
			[]*memsidecarv1.Message{by("zhang", "My sister Li works as a nurse in Shanghai."), by("li", "ok")},
			map[string]string{"zhang": "My sister Li"},
		},
		// A quoted line is not a statement of the one who quotes it.
		"somebody else's line": {
			[]*memsidecarv1.Message{by("小李", "在吗"), by("小陈", "小李：我住在深圳")}, nil,
		},
		"answers by name": {
			[]*memsidecarv1.Message{by("小王", "@小李 你住在哪里？"), by("小李", "@小王 我现在住在杭州。"), by("小张", "小陈，我每周都去爬山。"), by("小陈", "好")},
			map[string]string{"小李": "我现在住在杭州", "小张": "我每周都去爬山"},
		},
		"answers by name in English": {
			[]*memsidecarv1.Message{
				by("wang", "@li where do you live?"), by("li", "@wang I work as a nurse in Porto."),
				by("zhang", "Chen, I play badminton every Sunday with my brother."), by("chen", "<@42> ok"),
			},
			map[string]string{"li": "I work as a nurse in Porto.", "zhang": "I play badminton every Sunday"},
		},
		// An answer is that of the user who gives it, whoever else says yes.
		"the bot asks one": {
			[]*memsidecarv1.Message{by("小李", "早上好"), sidecartest.Answered("小王，你在学什么乐器？"), by("小王", "古筝，学了三年了"), by("小李", "好")},
			map[string]string{"小王": "你在学什么乐器？ — 古筝，学了三年了"},
		},
		"the bot asks one in English": {
			[]*memsidecarv1.Message{
				by("li", "good morning"), sidecartest.Answered("Where do you work, Wang?"), by("wang", "at a bakery in Lyon"), by("li", "ok"),
			},
			map[string]string{"wang": "Where do you work, Wang? — at a bakery in Lyon"},
		},
		"a question in between": {
			[]*memsidecarv1.Message{by("小王", "帮我约一下牙医"), sidecartest.Answered("@小王 牙医约在周五下午三点，可以吗？"), by("小李", "小王，晚上来吃饭吗"), by("小王", "好")}, nil,
		},
		"the same words": {
			[]*memsidecarv1.Message{by("小王", "我喜欢喝乌龙茶，不加糖。"), by("li", "我喜欢喝乌龙茶，不加糖。")}, map[string]string{"小王": "乌龙茶", "li": "乌龙茶"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			for who, got := range (room{r, name}).consider(t, test.dialogue...) {
				word := test.want[who]
				if word == "" && len(got) > 0 ||
					word != "" && (len(got) != 1 || !strings.Contains(got[0], word)) {
					t.Errorf("of %s is remembered %q, want %q", who, got, word)
				}
			}
		})
	}
	// Two people who make the same statement have a memory each. Forgetting one user keeps the other's.
	sidecartest.Must(r.ForgetUser(t.Context(), &memsidecarv1.ForgetUserRequest{Scope: sidecartest.WithoutChannel("小王")}))(t)
	if got := sidecartest.Texts(r.Memories(t, sidecartest.Direct("li"))); !slices.Contains(got, "我喜欢喝乌龙茶，不加糖。") {
		t.Errorf("after 小王 was forgotten, li has %q", got)
	}
}

// TestPausedSpeakerInAGroupLeavesNothing: Nothing of a paused user is stored, not even as the bot's questions. Others are remembered.
func TestPausedSpeakerInAGroupLeavesNothing(t *testing.T) {
	t.Parallel()
	r := sidecartest.Serve(t)
	sidecartest.Must(r.UpdateUserSettings(t.Context(), &memsidecarv1.UpdateUserSettingsRequest{
		Scope: sidecartest.Direct("小王"), Settings: &memsidecarv1.UserSettings{Paused: true}, UpdateMask: sidecartest.Mask("paused"),
	}))(t)
	got := room{
		r,
		"g",
	}.consider(
		t,
		by("小李", "我每周都打羽毛球。"),
		by("小王", "我对榴莲过敏。"),
		sidecartest.Answered("@小王 体检约在周五三点，可以吗？"),
		by("小王", "好"),
		by("小李", "好"),
	)
	if len(got["小王"]) > 0 || !slices.Equal(got["小李"], []string{"我每周都打羽毛球。"}) {
		t.Errorf("remembered is %q", got)
	}
	if e := r.Export(t, sidecartest.WithoutChannel("小李")); e.Holds("榴莲") {
		t.Error("小李's export has statements of 小王")
	}
}
