package lists

import "testing"

func TestOrdinals(t *testing.T) {
	for text, want := range map[string]Ordinal{
		"3": 3, " 3 ": 3, "３": 3, "③": 3, "3️⃣": 3, "#3": 3, "# 3": 3, "＃３": 3, "3.": 3, "3)": 3, "(3)": 3, "「3」": 3, "\"3\"": 3, "03": 3, "0": 0, "12": 12,
		"99999999999999999999": maxOrdinal,

		"三": 3, "十": 10, "十二": 12, "二十": 20, "二十一": 21, "一百": 100, "一百零五": 105, "一百一十": 110, "一百五": 150, "一千零五十": 1050, "叁": 3,
		"第三个": 3, "第三個": 3, "第3部": 3, "第 3 条": 3, "第３項": 3, "第三": 3, "第3": 3, "第十二篇": 12, "第三部电影": 3, "第三條新聞": 3, "第2个结果": 2,
		"3号": 3, "三號": 3, "编号3": 3, "序号三": 3, "我要第三个": 3, "我想看第三部电影": 3, "就要第3个吧": 3, "选3": 3, "选第三个,谢谢": 3, "那就第三个吧。": 3,
		"请帮我下载第三部": 3, "看看第三个": 3, "第一个": 1, "头一个": 1, "首个": 1, "第两个": 2, "第零个": 0,
		"最后一个": -1, "最後一個": -1, "最后一部电影": -1, "最后": -1, "最后的": -1, "最后那个": -1, "末尾": -1, "我要最后一个": -1,
		"倒数第一个": -1, "倒数第二个": -2, "倒數第二個": -2, "倒数第3": -3, "倒数第二部电影": -2,
		"好的，第三个": 3, "嗯，第三个": 3, "好,3": 3, "对，第三个": 3, "还是第三个吧": 3, "换成第三个": 3, "换第三部": 3, "再看第二个": 2, "3呗": 3, "第三个可以": 3,
		"第三个也可以": 3, "3号电影": 3, "第三种方案": 3, "方案三": 3, "序号为3": 3, "最后的那个": -1, "最后面的那个": -1, "最下面那个": -1, "最下面一个": -1,
		"最底下那部": -1, "末尾那个": -1, "末个": -1, "最上面": 1, "最上面的": 1, "最上面一个": 1, "最前面的那个": 1,

		"what about 3?": 3, "how about the third one?": 3, "make it 3": 3,
		"three": 3, "Three": 3, "twenty-one": 21, "number three": 3, "No. 3": 3, "no.3": 3, "nr 3": 3, "item 3": 3, "option 3": 3, "movie three": 3,
		"item number 3": 3, "the number three": 3, "number one": 1, "one": 1,
		"third": 3, "the third": 3, "the third one": 3, "The third one, please!": 3, "3rd": 3, "the 3rd one": 3, "twenty-first": 21, "the twentieth": 20,
		"I'd like the third one": 3, "I want to see the third movie": 3, "first": 1, "the first film": 1, "the second result please": 2, "I want 3": 3,
		"last": -1, "the last one": -1, "last one": -1, "the very last one": -1, "the final one": -1, "second to last": -2, "the second last one": -2,
		"the second-to-last one": -2, "penultimate": -2, "last but one": -2, "third from the end": -3, "the third one from the bottom": -3,
	} {
		if got, ok := ParseSelection(text, nil); !ok || len(got.Spans) != 1 || got.Spans[0] != (Span{want, want}) {
			t.Errorf("%q is %v, %v; want %d", text, got, ok, want)
		}
	}
}

// TestNoOrdinals: Text that merely contains a number is no ordinal, because a wrong guess selects a wrong item.
func TestNoOrdinals(t *testing.T) {
	for _, text := range []string{
		"", " ", "?", "你好", "hello", "查询最新的电影信息", "#", "-1", "3.5", "3 or 4", "3/4", "http://x/3", "/mv/823D", "3D",
		"三个", "三部电影", "来三部", "两个", "来一首", "来首歌", "第九区", "看第九区", "第七封印", "第一滴血", "第三个问题", "第三次",
		"最后的武士", "一二三", "最后个", "最后部", "好几个", "换一个", "换一部", "再来一个", "可以", "好", "行", "对", "第三个不可以", "不要第三个", "一部分", "第", "第个", "个",
		"号", "倒数", "倒数三", "上一个", "十二个", "三体", "一代宗师",
		"three movies", "3 movies", "The Third Man", "First Blood", "The Last Emperor", "the one", "what about it", "make it",
		"no", "no thanks", "at last", "you first",
		"one more", "two of them", "III", "seconds", "third time", "twenty thirty",
	} {
		if got, ok := ParseSelection(text, nil); ok {
			t.Errorf("%q is parsed as %v", text, got)
		}
	}
}

func FuzzParseSelection(f *testing.F) {
	for _, seed := range []string{"3", "第三个", "the third one", "倒数第二个", "最后", "#３"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, titles := range [][]string{nil, {text, "3", "a: b"}} {
			s, ok := ParseSelection(text, titles)
			if !ok {
				continue
			}
			if s.None == (len(s.Spans) > 0) {
				t.Errorf("%q is %+v", text, s)
			}
			for _, span := range s.Spans {
				if span.First > maxOrdinal || span.First < -maxOrdinal || span.Last > maxOrdinal || span.Last < -maxOrdinal {
					t.Errorf("%q is %+v", text, s)
				}
			}
		}
	})
}

func TestOrdinalIn(t *testing.T) {
	for _, test := range []struct {
		o           Ordinal
		count, want int
	}{{3, 12, 3}, {0, 12, 0}, {13, 12, 13}, {-1, 12, 12}, {-2, 12, 11}, {-13, 12, 0}} {
		if got := test.o.In(test.count); got != test.want {
			t.Errorf("%d of %d is %d, want %d", test.o, test.count, got, test.want)
		}
	}
}
