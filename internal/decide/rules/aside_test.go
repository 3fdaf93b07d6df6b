package rules

import "testing"

// What is said around the matter goes; what only looks like it stays.
func TestAside(t *testing.T) {
	r := newRules(t, Config{})
	for _, words := range []string{
		// announcements without content
		"今天我有一个小问题想要请教你", "我遇到了一些麻烦，不知道该怎么办", "我最近有点事情想问问你", "I have a problem.", "I ran into a small issue today and need some help",
		"I'd like to change some details", "I wanted to talk to you about my week", "我想跟你聊聊我的工作",
		// promises to follow advice
		"谢谢，我会试试的", "我会注意的", "我会好好考虑你的建议", "以后我会多运动", "I'll definitely give them a try", "Thanks, I'll keep that in mind",
		"I will make sure to rest", "I'll write it down carefully",
		// wishes about the bot, thanks, talk about the talk
		"希望我们能成为朋友", "你是我的好朋友", "认识你我很高兴", "和你聊天很愉快", "I hope we can become good friends", "I'm glad to have you as a friend", "I really enjoyed our chat",
		"I'd love to chat with you again", "I appreciate your help with my project", "I was hoping you could help me with my essay",
		"That's all I wanted to ask",
		// one-off requests, general knowledge, moods, leaving
		"我想找一部电影看", "I want to find a good book to read", "It makes me wonder how we learn languages", "I thought penguins could fly",
		"I've got to run", "I should head out now", "我现在得去做饭了",
		"I'm really tired today", "I feel a bit sad today", "They always make me feel happy", "我已经想好了一些解决办法", "I will work hard to find my strengths",
		"这些都是我喜欢的活动", "I enjoy learning about these", "I hope it makes me feel better",
		// everyday outings, headings, a team's shop talk
		"今天我去公园散步了", "我刚去超市买菜了", "I went for a walk this morning", "解决思路：返回doc_id", "记录为“多次重试”问题的结论", "我把batch调小一点", "我加doc_id字段",
	} {
		if v, s := consider(t, r, talk(words)); v.Remember {
			t.Errorf("%q is remembered as %q: %s", words, texts(s), v.Reason)
		}
	}
	for _, words := range []string{
		"我有一个双胞胎妹妹", "我最近工作遇到了麻烦，老板要降我的工资", "I have a problem with my knee", "I'd like to talk to my boss about a raise", "我想告诉你我怀孕了",
		"I wanted to tell you I got promoted",
		"我会去北京读博士", "下周我会去看看我爷爷", "我要努力考上清华大学", "我打算明年提高英语水平", "I'll start a new job in May", "I'm going to try out for the swim team " +
			"next month", "I want to try sushi in Tokyo",
		"小明是我最好的朋友", "我们是大学时的朋友", "My best friend is a vet", "这是我的第一份工作", "这是我女儿", "I hope to become a nurse",
		"我想找一部叫《活着》的小说", "今天我和女朋友去公园散步了", "我每天早上去公园跑步", "I go for a run every morning", "I went for a walk with my wife", "我在学游泳",
		"When we moved to Spain we bought a house", "I am drawn to old maps", "I'm learning Dutch", "最近工作压力很大", "这几天总是失眠", "我最近在考虑要不要换工作",
		"I need to renew my passport", "我做销售五年了", "I'll pick up my daughter from school every Friday",
		"I'm so tired of my job these months", "My boss makes me feel small every day", "I am thinking about whether to change jobs",
		"我的手机号是13800000000",
	} {
		if v, _ := consider(t, r, talk(words)); !v.Remember {
			t.Errorf("%q is not remembered: %s", words, v.Reason)
		}
	}
}

// The bot keeps the speaker's lists and asks for the details of the speaker's work.
func TestRecords(t *testing.T) {
	r := newRules(t, Config{})
	for words, want := range map[string]string{
		"Please add oat milk to my shopping list.":       "The user asked the assistant to add oat milk to their shopping list.",
		"Can you update the budget from $900 to $1,200?": "The user asked the assistant to update the budget from $900 to $1,200.",
		"Remove 'call the plumber' from my to-do list": "The user asked the assistant to remove 'call the plumber' from " +
			"their to-do list.",
		"把牛奶加到我的购物清单里":                                                  "用户要求助手把牛奶加到用户的购物清单里",
		"请把会议时间改到下午4点":                                                  "用户要求助手把会议时间改到下午4点",
		"Remove the last sentence from the essay":                       "",
		"Change the tone to be friendlier":                              "",
		"把第二段改成3句话":                                                     "",
		"I need help with my report. The title is \"Winter Wheat\" now": "",
	} {
		_, s := consider(t, r, talk(words))
		if got := texts(s); want == "" && len(got) > 0 && got[0] != "The title is \"Winter Wheat\" now." || want != "" &&
			(len(got) != 1 || got[0] != want) {
			t.Errorf("%q: got %q, want %q", words, got, want)
		}
	}
	dialogue := []string{"I need to write a report about wheat", "A: Sure! What is the budget?", "The budget is $40,000."}
	v, s := consider(t, r, talk(dialogue...))
	if len(s) == 0 || s[len(s)-1].Text != `Asked "What is the budget?", the user answered: "The budget is $40,000".` || len(s[len(s)-1].MessageIDs) != 2 {
		t.Errorf("the answer about the report gave %+v (%s)", s, v.Reason)
	}
	for name, lines := range map[string][]string{
		"no work of the speaker's": {"Hi", "A: What is the capital of France?", "The capital of France is Paris."},
		"no question":              {"I need to write a report about wheat", "A: Sure!", "The weather is fine over there."},
		"nothing to say":           {"I need to write a report about wheat", "A: What is the budget?", "That's all for now, thanks for the help."},
	} {
		_, s := consider(t, r, talk(lines...))
		for _, x := range s {
			for _, id := range x.MessageIDs {
				if id == "#2" {
					t.Errorf("%s: %q is remembered", name, x.Text)
				}
			}
		}
	}
}
