package lexical_test

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/memsidecar/memsidecar/internal/lang/lexical"
)

// found lists the terms that a question shares with a statement.
func found(question, statement string) []string {
	terms := lexical.Terms(statement)
	var hits []string
	for _, q := range lexical.QueryTerms(question) {
		if slices.Contains(terms, q) {
			hits = append(hits, q)
		}
	}
	return hits
}

func TestQuestionFindsStatement(t *testing.T) {
	for _, c := range []struct{ question, statement, by string }{
		// Chinese
		{"我的猫叫什么名字？", "用户养了一只猫", "猫"},
		{"我对什么过敏", "用户对花生过敏", "过敏"},
		{"我在开会吗", "用户下午有会议", ""},
		{"会议是几点", "用户下午有会议", "会议"},
		{"我会弹吉他吗", "用户正在学吉他", "吉他"},
		{"常去哪家酒吧", "用户周末去酒吧", "酒吧"},
		{"上海", "用户从上海搬到了杭州", "上海"},
		// mixed
		{"我用什么做frontend", "我在用Vue做frontend", "frontend"},
		{"vue 是什么", "我在用Vue做frontend", "vue"},
		{"ＶＵＥ", "我在用Vue做frontend", "vue"},
		{"我的ｉＰｈｏｎｅ１５", "用户有一台iPhone15", "iphone15"},
		// English
		{"who runs?", "The user enjoys running", "run"},
		{"running", "She runs a shop", "run"},
		{"What allergies do I have?", "The user has an allergy to peanuts", "allergi"},
		{"What is my dogs' name?", "The user’s dog is called Rex", "dog"},
		{"café", "The user likes the cafe downtown", "cafe"},
		{"CAFE\u0301", "The user likes the Café downtown", "cafe"},
		// numbers, dates, names with digits, addresses
		{"2023-05-04", "用户在2023年5月4日搬家", "2023-05-04"},
		{"2023年5月4号发生了什么", "The user moved on 2023-05-04", "2023-05-04"},
		{"2023/5/4", "The user moved on 2023-05-04", "2023-05-04"},
		{"2023年5月发生了什么", "The user moved on 2023-05-04", "2023-05"},
		{"5月", "The user's birthday is on 05-04", "5"},
		{"iPhone 15", "用户有一台iPhone15", "15"},
		{"iphone15", "The user bought an iPhone 15", "iphon"},
		{"vitamin b2", "The user takes vitamin B2", "b2"},
		{"how much is 1000", "The user paid 1,000 euros", "1000"},
		{"3.14", "pi is 3.14.", "3.14"},
		{"who is Ann@Example.com", "The user's address is ann@example.com.", "ann@example.com"},
		{"example.com", "The user's address is ann@example.com", "example.com"},
		{"HTTPS://example.com/a?b=1", "see https://example.com/a?b=1!", "https://example.com/a?b=1"},
		{"do you like C++?", "The user writes C++, mostly.", "c++"},
		{"C#", "The user writes C# and F#", "c#"},
		{"node", "用户用node.js写服务", "node"},
		{"vue.js", "用户用Vue写前端", "vue"},
		{"state-of-the-art", "state-of-the-art models", "state-of-the-art"},
		{"at&t", "用户在AT&T上班", "at&t"},
		// other scripts
		{"ドラゴンクエスト", "ユーザーはﾄﾞﾗｺﾞﾝｸｴｽﾄが好き", "クエ"},
		{"서울에 살아요?", "사용자는 서울에서 일한다", "서울"},
		{"เชียงใหม่", "ผู้ใช้อยู่ที่เชียงใหม่", "ชี"},
		{"ёлка", "Пользователь купил ЕЛКА", "елка"},
		// emoji change nothing
		{"🐱猫🐱", "😀用户😀养猫👍🏽", "猫"},
		{"dog🐶s", "my dog🐶", "dog"},
	} {
		if hits := found(c.question, c.statement); c.by != "" && !slices.Contains(hits, c.by) {
			t.Errorf("%q should find %q by %q; they share %q\n%q\n%q", c.question, c.statement, c.by, hits,
				lexical.QueryTerms(c.question), lexical.Terms(c.statement))
		}
	}
}

func TestFunctionWordsFindNothing(t *testing.T) {
	for question, statement := range map[string]string{
		"你还记得我男友是谁吗":        "用户的妈妈是老师，她还在上班",
		"请问这个包裹是什么呢，可以告诉我吗": "这是用户的自行车，他可以骑",
		"我的猫":                           "用户的狗是我的",
		"Do you remember who I met?":    "The user is the one who said that you are the best",
		"what's the user's favourite":   "The user's sister doesn't like what the user cooks",
		"What does the user like about": "The user moved to Portland",
		"用户怎么样":                         "用户搬到了杭州",
		"什么时候出发":                        "用户小时候住在乡下",
		"5月4日":                          "用户9月3日去北京",
		"なにが好きですか":                      "ユーザーはりんごが嫌いです",
	} {
		if hits := found(question, statement); len(hits) > 0 {
			t.Errorf("%q finds %q by %q", question, statement, hits)
		}
	}
}

func TestSubjectOfStoredStatementsCarriesNoWeight(t *testing.T) {
	for with, without := range map[string]string{
		"用户喜欢茶。用户住在北京":              "喜欢茶。住在北京",
		"用戶喜歡茶":                     "喜歡茶",
		"The user likes tea.":       "likes tea.",
		"The user's sister sings":   "sister sings",
		"User likes tea. User runs": "likes tea. runs",
		"He said that the user ran": "He said that ran",
	} {
		if a, b := lexical.Terms(with), lexical.Terms(without); !slices.Equal(a, b) {
			t.Errorf("Terms(%q) = %q, but without its subject %q", with, a, b)
		}
	}
	for text, term := range map[string]string{
		"用户名是abc":                     "用户",
		"他负责用户增长":                     "用户",
		"The user interface is slow":  "user",
		"She is a power user":         "user",
		"The user-friendly one":       "user",
		"The users complained loudly": "user",
	} {
		if !slices.Contains(lexical.Terms(text), term) {
			t.Errorf("Terms(%q) = %q lacks the content word %q", text, lexical.Terms(text), term)
		}
	}
}

func TestFunctionWordsAloneAreKept(t *testing.T) {
	for _, text := range []string{"用户", "the user", "who are you?", "你是谁", "什么", "The", "です", "我"} {
		if len(lexical.Terms(text)) == 0 || len(lexical.QueryTerms(text)) == 0 {
			t.Errorf("%q yields %q, as a query %q", text, lexical.Terms(text), lexical.QueryTerms(text))
		}
	}
}

func TestTextWithoutWordsYieldsNothing(t *testing.T) {
	for _, text := range []string{"", " \n\t", "😀👍🏽❤️", "。，！？…—", "!?;+-*/", "\xff\xfe", "\u0301", "・゛"} {
		if terms := lexical.Terms(text); terms != nil {
			t.Errorf("Terms(%q) = %q", text, terms)
		}
		if terms := lexical.QueryTerms(text); terms != nil {
			t.Errorf("QueryTerms(%q) = %q", text, terms)
		}
	}
}

func TestRepetitionsCountInDocumentsOnly(t *testing.T) {
	count := func(terms []string, want string) (n int) {
		for _, term := range terms {
			if term == want {
				n++
			}
		}
		return n
	}
	const text = "猫喜欢猫 cat cats"
	for term, want := range map[string]int{"猫": 2, "cat": 2} {
		if got := count(lexical.Terms(text), term); got != want {
			t.Errorf("%q is %d times in Terms, want %d", term, got, want)
		}
		if got := count(lexical.QueryTerms(text), term); got != 1 {
			t.Errorf("%q is %d times in QueryTerms, want once", term, got)
		}
	}
}

func TestTokensHaveKinds(t *testing.T) {
	got := lexical.Tokens("the Running cats 12 e-mail 我猫")
	want := []lexical.Token{
		{Term: "the", Surface: "the", Kind: lexical.Word, Function: true},
		{Term: "run", Surface: "running", Kind: lexical.Word},
		{Term: "cat", Surface: "cats", Kind: lexical.Word},
		{Term: "12", Surface: "12", Kind: lexical.Number},
		{Term: "e-mail", Surface: "e-mail", Kind: lexical.Compound},
		{Term: "e", Surface: "e", Kind: lexical.Word},
		{Term: "mail", Surface: "mail", Kind: lexical.Word},
		{Term: "我", Surface: "我", Kind: lexical.Char, Function: true},
		{Term: "猫", Surface: "猫", Kind: lexical.Char},
		{Term: "我猫", Surface: "我猫", Kind: lexical.CharPair, Function: true},
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func FuzzTerms(f *testing.F) {
	for _, seed := range []string{"用户在2023年5月4日", "a.b@c.com https://x/y?z=1#q c++", "ｶﾞﾝ\xff\u0301", "2023-05-", "the user", "用户", "''s", "5's"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		terms := lexical.Terms(text)
		tokens := lexical.Tokens(text)
		if len(terms) != len(tokens) {
			t.Fatalf("%d terms but %d tokens", len(terms), len(tokens))
		}
		for i, term := range terms {
			if term != tokens[i].Term || term == "" || !utf8.ValidString(term) || strings.ContainsAny(term, " \n") {
				t.Fatalf("term %d is %q, token %+v", i, term, tokens[i])
			}
		}
		query := lexical.QueryTerms(text)
		if (len(query) == 0) != (len(terms) == 0) {
			t.Fatalf("terms %q, query terms %q", terms, query)
		}
		for _, q := range query {
			if !slices.Contains(terms, q) {
				t.Fatalf("query term %q is not a term of the same text: %q", q, terms)
			}
		}
		lexical.Language(text)
	})
}

const (
	statementZH = "用户在2023年5月4日从上海搬到了杭州，现在在一家做电商的公司担任前端工程师，平时喜欢用Vue写项目，周末常去西湖边跑步。"
	statementEN = "The user moved from Seattle to Portland in May 2023 and enjoys running with Vue developers."
)

func BenchmarkTerms(b *testing.B) {
	for name, text := range map[string]string{"zh": statementZH, "en": statementEN} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				lexical.Terms(text)
			}
		})
	}
}

func BenchmarkQueryTerms(b *testing.B) {
	for name, text := range map[string]string{"zh": "你还记得我女朋友的生日是什么时候吗", "en": "Do you remember when my girlfriend's birthday is?"} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				lexical.QueryTerms(text)
			}
		})
	}
}

func BenchmarkLanguage(b *testing.B) {
	for name, text := range map[string]string{"zh": statementZH, "en": statementEN} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				lexical.Language(text)
			}
		})
	}
}
