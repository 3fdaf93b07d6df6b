package local_test

import (
	"testing"

	"github.com/memsidecar/memsidecar/internal/embed"
	"github.com/memsidecar/memsidecar/internal/embed/local"
)

// recallCase is a statement and a question that it answers. All statements compete for every question.
type recallCase struct{ statement, question string }

func recallCases() []recallCase {
	return []recallCase{
		{"用户养了一只橘猫，名字叫豆豆", "我的猫叫什么名字"},
		{"用户对花生过敏，吃了会起疹子", "我对什么过敏"},
		{"用户在2023年5月4日从上海搬到了杭州", "我什么时候搬家到杭州的"},
		{"用户在一家电商公司担任前端工程师，平时用Vue写项目", "你知道我是做什么工程师吗"},
		{"用户的女朋友叫林小雨，生日是8月15日", "女朋友什么时候过生日"},
		{"用户每天早上七点去西湖边跑步", "我一般在哪里跑步"},
		{"用户喜欢喝手冲咖啡，不喜欢喝奶茶", "我喜欢喝什么"},
		{"用户计划明年去日本京都看樱花", "我想去哪里旅游看樱花"},
		{"用户的妈妈最近住院做了膝盖手术", "我妈妈身体怎么样，手术顺利吗"},
		{"用户正在学习弹吉他，每周三晚上上课", "我在学什么乐器，吉他课是周几"},
		{"用户不能吃辣，一吃就胃疼", "帮我推荐晚饭，我能吃辣吗"},
		{"用户大学毕业于浙江大学计算机系", "我是哪个大学毕业的"},
		{"用户周末常和朋友去酒吧看球赛", "周末我常去哪里看球"},
		{"用户的老板姓陈，对他要求很严格", "我老板姓什么"},
		{"用户养过一只叫旺财的狗，去年去世了", "我以前养的狗叫什么"},
		{"用户最近失眠，凌晨三点还睡不着", "我最近睡眠怎么样，还失眠吗"},
		{"用户打算买一台MacBook Pro M3", "我要买什么电脑来着，macbook吗"},
		{"用户的弟弟在北京读研究生，学的是法律", "我弟弟在哪里读书"},
		{"用户喜欢看科幻小说，最喜欢的作家是刘慈欣", "我最喜欢的作家是谁"},
		{"用户下周一上午十点有一个面试", "我面试是几点"},
		{"用户的驾照去年考了三次才过", "我驾照考了几次"},
		{"用户信用卡每月10号还款", "信用卡几号还款"},
		{"用户是素食主义者，已经坚持两年", "我吃肉吗，是不是素食"},
		{"用户害怕坐飞机，出门一般坐高铁", "我为什么不坐飞机"},
		{"用户想减肥，目标是三个月瘦十斤", "我减肥的目标是什么"},
		{"用户晚上在海底捞打工", "我在海底捞做什么"},
		{"用户的公司楼下新开了一家健身房", "健身房在哪"},
		{"用户和前女友分手是因为异地", "我和前女友为什么分手"},
		{"The user has an orange cat named Biscuit", "What's my cat's name?"},
		{"The user is allergic to peanuts and carries an EpiPen", "What allergies do I have? am I allergic to nuts?"},
		{"The user moved from Seattle to Portland in May 2023", "When did I move to Portland?"},
		{"The user works as a frontend engineer at a logistics startup", "Where do I work as an engineer?"},
		{"The user's girlfriend is named Emily and her birthday is August 15", "When is my girlfriend's birthday?"},
		{"The user runs five miles along the river every morning", "Where do I go running in the morning?"},
		{"The user prefers pour-over coffee and dislikes milk tea", "Do I like coffe or tea?"},
		{"The user plans to visit Kyoto next spring to see the cherry blossoms", "Where will I see cherry blossom?"},
		{"The user's mother had knee surgery last month", "How is my mom after the surgery?"},
		{"The user is taking guitar lessons on Wednesday evenings", "What instrument am I learning? guitars?"},
		{"The user cannot eat spicy food because of stomach problems", "Can I eat spicy dishes?"},
		{"The user graduated from the University of Michigan with a biology degree", "Which university did I graduate from?"},
		{"The user watches football with friends at a sports bar on weekends", "Who do I watch football with?"},
		{"The user's boss is strict about deadlines", "Tell me about my boss"},
		{"The user's dog Rusty passed away last year", "When did my dog die?"},
		{"The user has had trouble sleeping recently", "How have I been sleeping?"},
		{"The user is considering buying a MacBook Pro", "Which laptop was I going to buy, a macbook?"},
		{"The user's brother studies law in Boston", "What does my brother study?"},
		{"The user loves science fiction novels, especially Ursula Le Guin", "Which novelist do I love?"},
		{"The user has a job interview next Monday at 10", "When is my interview?"},
		{"The user failed the driving test twice", "Did I pass my driving test?"},
		{"The user is afraid of flying and takes trains instead", "Why do I travel by train rather than fly?"},
	}
}

// TestRecall detects changes that make the vectors worse. Its examples are few: a score of 1 says little about other questions.
func TestRecall(t *testing.T) {
	cases := recallCases()
	statements, questions := make([]string, len(cases)), make([]string, len(cases))
	for i, c := range cases {
		statements[i], questions[i] = c.statement, c.question
	}
	for dimensions, least := range map[int]float64{64: 0.80, local.DefaultDimensions: 0.95, 1024: 0.97} {
		e := newEmbedder(t, dimensions)
		docs, asked := embedAll(t, e, embed.ForDocument, statements), embedAll(t, e, embed.ForQuery, questions)
		var mrr float64 // mean reciprocal rank
		for i := range cases {
			rank := 1
			for j := range docs {
				if dot(asked[i], docs[j]) > dot(asked[i], docs[i]) {
					rank++
				}
			}
			if rank > 1 && dimensions == local.DefaultDimensions {
				t.Logf("%q has rank %d for %q", statements[i], rank, questions[i])
			}
			mrr += 1 / float64(rank) / float64(len(cases))
		}
		t.Logf("%d dimensions: MRR %.3f", dimensions, mrr)
		if mrr < least {
			t.Errorf("MRR is %.3f at %d dimensions, want at least %.2f", mrr, dimensions, least)
		}
	}
}
