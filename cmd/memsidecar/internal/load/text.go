package load

import (
	"fmt"
	"math/rand/v2"
)

// words are the vocabulary of generated texts, with the same number of entries in each language.
type words struct {
	statement, question, said []string // with the verb %s for a thing and a place
	things, places            []string
	numbered                  string
}

func english() words {
	return words{
		statement: []string{
			"The user likes %s and often goes to %s for it.", "The user is allergic to %s since a dinner in %s.",
			"The user bought %s on a trip to %s.", "The user's sister sells %s in %s.",
			"The user plans to learn more about %s in %s next spring.", "The user does not want to hear about %s or %s again.",
		},
		question: []string{
			"Do I like %s, and where would I get it: in %s?", "What happened with %s in %s?", "Who do I know that has to do with %s in %s?",
		},
		said: []string{
			"Please remember: I love %s, and I always get it in %s.", "I'm allergic to %s, that's what they told me in %s.",
			"My brother sells %s in %s, by the way.",
		},
		things: []string{
			"jazz records", "peanuts", "green tea", "mountain bikes", "chess books", "film cameras", "pottery", "sourdough bread",
			"houseplants", "board games", "running shoes", "oil paints", "espresso", "model trains", "wool scarves", "dumplings",
			"old maps", "guitar strings", "cherry jam", "telescopes",
		},
		places: []string{
			"Lisbon", "Oslo", "Vienna", "Kyoto", "Quito", "Boston", "Leeds", "Prague", "Naples", "Cairo", "Lima", "Turin", "Ghent",
			"Perth", "Malmö", "Nairobi", "Seoul", "Riga", "Porto", "Denver",
		},
		numbered: " (note %d)",
	}
}

func chinese() words {
	return words{
		statement: []string{
			"用户很喜欢%s，常常去%s买。", "用户对%s过敏，是在%s吃晚饭时发现的。", "用户去%[2]s旅行时买了%[1]s。",
			"用户的姐姐在%[2]s卖%[1]s。", "用户打算明年春天去%[2]s学%[1]s。", "用户不想再听到关于%s和%s的事。",
		},
		question: []string{"我喜欢%s吗，要去%s买吗？", "我在%[2]s的时候，%[1]s怎么了？", "我认识的人里，谁在%[2]s做%[1]s？"},
		said: []string{
			"请记住：我很喜欢%s，每次都去%s买。", "我对%s过敏，是%s的医生说的。", "对了，我弟弟在%[2]s卖%[1]s。",
		},
		things: []string{
			"爵士唱片", "花生", "绿茶", "山地车", "围棋书", "胶片相机", "陶器", "酸面包", "盆栽", "桌游", "跑鞋", "油画颜料", "咖啡",
			"火车模型", "羊毛围巾", "饺子", "旧地图", "吉他弦", "樱桃果酱", "望远镜",
		},
		places: []string{
			"杭州", "成都", "广州", "西安", "南京", "苏州", "青岛", "昆明", "厦门", "长沙", "武汉", "哈尔滨", "大理", "重庆", "天津",
			"拉萨", "北京", "上海", "桂林", "福州",
		},
		numbered: "（第%d条）",
	}
}

// language alternates: even numbers are English, odd ones Chinese.
func language(n int) words {
	if n%2 == 0 {
		return english()
	}
	return chinese()
}

// Statement returns the n-th memory of a generated user. Each number gives another text, and consecutive ones differ in topic and place.
func Statement(n int) string {
	w := language(n)
	template, rest := n/2%len(w.statement), n/2/len(w.statement)
	thing, round := rest%len(w.things), rest/len(w.things)
	place := w.places[(round+11*thing+3*template)%len(w.places)]
	text := fmt.Sprintf(w.statement[template], w.things[(thing+7*template)%len(w.things)], place)
	if again := round / len(w.places); again > 0 {
		text += fmt.Sprintf(w.numbered, again+1)
	}
	return text
}

// Question returns a generated user's query. Equal numbers give equal texts.
func Question(n int64) string {
	w := language(int(n & 1))
	return pick(w, w.question, n)
}

// said returns a message that is worth remembering. Equal numbers give equal texts.
func said(n int64) string {
	w := language(int(n & 1))
	return pick(w, w.said, n)
}

func pick(w words, templates []string, n int64) string {
	r := rand.New(rand.NewPCG(uint64(n), 1)) //nolint:gosec // made-up texts, the same every time
	return fmt.Sprintf(templates[r.IntN(len(templates))], w.things[r.IntN(len(w.things))], w.places[r.IntN(len(w.places))])
}
