package audit

import (
	"testing"

	"github.com/memsidecar/memsidecar/internal/memory"
)

// TestJunk: Junk is recognised by its reason. Memories that only look like junk are not.
func TestJunk(t *testing.T) {
	for reason, texts := range map[string][]string{
		"asks something": {
			`The user said: "What should I wear to a wedding in March?"`, "用户说：“明天会下雨吗？”", "The user asks how to boil an egg.",
			"用户询问怎么煮鸡蛋。", `The user said: "Which one is cheaper"`,
		},
		"is mere politeness": {
			`The user said: "Thank you so much for the recipe!"`, "用户说：“谢谢你的建议！”", "用户表示感谢", `The user said: "Thanks, Nora!"`, "The user thanked the assistant.",
			`The user said: "Good night, see you tomorrow."`, "用户说：“听起来不错”",
		},
		"promises something in the conversation": {
			`The user said: "I'll give it a try this weekend."`, "用户说：“我会试试的”", "The user will let you know.",
		},
		"is what the bot says or wishes": {
			`The user said: "I hope you enjoy the trip!"`, "用户说：“希望您旅途愉快”", "The assistant recommends a lemon risotto.", "助手建议用户多喝水。",
			`The user said: "Let me know if you need more help."`,
		},
		"is about the conversation itself": {
			"今天用户想跟助手聊聊", "用户想向助手请教一个问题", `The user said: "Today I want to talk to you about my plans."`,
			"Yesterday's conversation really helped the user a lot.",
		},
		"points at something that it does not name": {"The user likes it very much.", "用户喜欢这个。", `The user said: "I already did that."`},
		saysNothing: {`The user said: "ok haha"`, "用户说：“嗯嗯，好的”", "用户说：“好”", "The user said: \"...\""},
		"repeats a memory, in the third person, as the user's words": {
			`The user said: "The user is allergic to peanuts."`, "用户说：“用户喜欢吃辣”",
		},
		"repeats the memory block of the bot's prompt":               {"用户说：“【关于用户的记忆 - 仅供上下文参考】他喜欢茶”"},
		"is mere politeness; promises something in the conversation": {`The user said: "Thanks, I'll check it out."`},
		"": {
			"The user is allergic to peanuts.", "用户对花生过敏", "The user's name is Anna.", "用户叫小林。", "用户 25 岁。",
			`The user said: "Thanks! My daughter Mia loved the cake."`, "用户说：“谢谢，我女儿很喜欢那个蛋糕”",
			"The user wants the assistant to answer in Chinese.", "用户希望助手称呼他为老张。",
			"The user plans to try the new ramen place on Friday.", "用户打算周五去试试那家新拉面馆。",
			"The user asked Lena to marry him last summer.", "The user hopes to become a nurse.", "用户希望明年换工作。",
			"The user has a question every child asks: he keeps a list of answers.", "用户喜欢喝茶。", "用户养了一只猫叫三三。",
			"That sounds good but the user works at night.", "用户喜欢跟妹妹聊天。", "The user likes to talk to strangers on the train.",
			`The user said: "Jazz!"`, `The user said: "Peanuts, why?"`, "用户会弹钢琴。", "用户会说法语。",
			"The user paid 3.50 for the ticket.", `The user said: "I can't eat gluten, what can you recommend?"`,
			"The user's good friend is Tom.", "The user thinks that Berlin is too loud.", "用户想去冰岛看极光。", "用户在家养了蜜蜂呢", "用户对什么都过敏。", "用户不知道自己的血型。",
		},
	} {
		for _, text := range texts {
			if got := junkReason(&memory.Memory{Text: text}); got != reason {
				t.Errorf("%s: %q, want %q", text, got, reason)
			}
		}
	}
	if got := junkReason(&memory.Memory{Text: "The user likes it.", Explicit: true}); got != "" {
		t.Errorf("what the user asked to remember is junk: %s", got)
	}
}
