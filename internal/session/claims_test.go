package session

import (
	"testing"
	"time"
)

// films is the list that the replies below are compared with.
var films = evidence{
	lists: []ShownList{{ShownAt: time.Unix(1, 0), Items: []ShownItem{
		{Number: 1, Key: "/mv/m7BA", Title: "得闲谨制"},
		{Number: 2, Key: "https://site.example/v/4LjJ", Title: "镖人", Attributes: `{"magnet":"magnet:?xt=urn:btih:aa"}`},
		{Number: 3, Key: "/mv/823D", Title: "惊变28年2：白骨圣殿"},
		{Number: 4, Key: "tt0041959", Title: "The Third Man"},
	}}},
	text: foldClaim("see https://docs.example/help/start\n{\"url\": \"/dl/7Q2\"}\n"),
}

// TestClaimsWithoutEvidenceAreExcluded: Only a short reply that claims something without evidence is excluded.
func TestClaimsWithoutEvidenceAreExcluded(t *testing.T) {
	guard := claims{maxRunes: 50}
	for want, replies := range map[bool][]string{
		true: {
			"第三部的链接：https://www.gying.org/movies/45776", "链接：/mv/45776", "www.gying.org/movies/1", "下载：magnet:?xt=urn:btih:bb",
			"第3個的網址是 gying.org/movies/45776 ，請查收", "Sure! https://www.gying.org/movies/45776", "Here you go: https://site.example/v/4LjK",
			"The page is [here](https://site.example/watch?v=99).", "/mv/823", "https://www.gying.org/mv/823DX",
			"已找到资源，下载链接如下", "已为你找到 3 个下载地址。", "搜索到了，正在下载文件", "已經找到這部電影的資源", "找到了！这是下载链接",
			"I found 4 results.", "I've found the download link.", "Here's the link you asked for",
			"Download started, the file is on its way", "Found it! Here is the magnet.",
			// Written when the guard was finished: 18 of 20 were excluded, and none of the 25 below.
			"第三部在这里：https://gying.net/v/889900", "给你地址 /movie/45776/play", "链接发你了：pan.baidu.com/s/1abcDEF", "我帮你查到了3个资源", "下载好了，文件在网盘",
			"资源已找到，请查收链接", "已把第三部加入下载", "搜索结果如下：3部影片", "已获取该影片的磁力链接", "第3名是《泰坦尼克号》", "3. 《泰坦尼克号》",
			"Got it, here is the download link", "I have found 2 torrents matching it", "The file has been downloaded", "It's at https://imdb.com/title/tt1234567",
			"magnet:?xt=urn:btih:deadbeef", "Your link: bit.ly/3xYz", `#3 is "Titanic"`, "Here are the results you wanted", "The movie is now downloading",

			"第3部是《流浪地球》。", "第2个：《得闲谨制》", "Number 3 is \"The Third Man\".", "No. 9: “Arrival”",
		},
		false: {
			"", "好的！", "不客气，随时找我。", "你好呀，今天想看什么？", "第3部评分 7.2，挺不错的。", "你选的是第3部《惊变28年2：白骨圣殿》。", "第1部是《得闲谨制》", "惊变28年2讲的是病毒。",
			"链接：https://www.gying.org/mv/823D", "真实地址是 /mv/823D。", "https://site.example/v/4LjJ", "magnet:?xt=urn:btih:aa", "见 https://docs.example/help/start",
			"下载地址：https://cdn.example/dl/7Q2", "已找到《镖人》的资源。", "找到了，镖人的下载链接在上面那条", "没有找到资源，换个关键词试试？", "没找到下载链接。", "暂时还没找到这部电影的资源",
			"需要我帮你找到下载链接吗？", "要我把链接发给你吗", "等我找到了资源再告诉你", "如果找到了链接会告诉你", "官网是 https://www.gying.org", "1/2 的人喜欢它", "可以用 and/or 连接",
			"Sure, anything else?", "I could not find it. No result, sorry.", "I haven't found the link yet.",
			"Once I found a link I will tell you.", "Do you want me to find the link?",
			"I found that scene moving, too.", "Found The Third Man for you: the link is tt0041959.", "Number 4 is \"The Third Man\".", "It was released on 2026/02/19.",
			"我觉得第二部更好看", "稍等，我查一下", "抱歉，我不知道", "这部电影是2025年上映的", "你想要第几个的链接？", "好的，马上为你查询", "我建议看第一部",
			"下载之前先确认一下是哪一部", "可以把编号发给我吗", "哈哈，我也喜欢", "没查到相关结果", "谢谢夸奖", "这个我得用工具查一下",
			"Let me look that up.", "Which one would you like?", "I can find the link if you tell me the number.", "I'm not able to download files.",
			"That film came out in 1949.", "You're welcome!", "I like the first movie more.", "Nothing found for that, sorry.", "Did you find the link?",
			"I'd go with number 3.", "It has 3 sequels.", "The results may vary.",

			"You can pick a number from the list.", "I think the third one is the best.", "1. 打开设置\n2. 点“下载”", "She found her keys.",
		},
	} {
		for _, reply := range replies {
			if got := guard.candidate(reply) && films.unsupported(reply); got != want {
				t.Errorf("%q is excluded: %v", reply, got)
			}
		}
	}
	long := "第三部的链接：https://www.gying.org/movies/45776 。" + "这部电影讲的是一个很长的故事，从病毒爆发的第一天说起，一直说到二十八年以后的白骨圣殿，里面有很多人物和线索，值得慢慢看。"
	if guard.candidate(long) {
		t.Error("a long reply is excluded")
	}
	if (claims{}).candidate("https://www.gying.org/movies/45776") {
		t.Error("a disabled guard excludes a reply")
	}
}

// TestClaimLength: A Latin letter counts a third of a Chinese character, and a URL counts nothing.
func TestClaimLength(t *testing.T) {
	url := " https://www.gying.org/movies/45776/with/a/very/long/path/that/does/not/count/as/words/of/the/reply/at/all"
	guard := claims{maxRunes: 10}
	for text, want := range map[string]bool{"一二三四五六七八九": true, "一二三四五六七八九十": false, "twenty-eight letters or so": true, "thirty or more letters are long": false} {
		if got := guard.candidate(text + url); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}
