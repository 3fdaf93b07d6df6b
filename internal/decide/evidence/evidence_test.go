package evidence_test

import (
	"strings"
	"testing"
	"time"

	"github.com/memsidecar/memsidecar/internal/decide/evidence"
)

// at is a Saturday afternoon.
var at = time.Date(2026, 11, 21, 15, 4, 0, 0, time.FixedZone("", 8*3600))

func check(statement string, cited ...string) string {
	var said []evidence.Said
	var all []int
	for i, text := range cited {
		said, all = append(said, evidence.Said{Text: text, At: at}), append(all, i)
	}
	_, problem := evidence.NewChecker(said, []string{"alice", "bot-Mira"}).Check(statement, all, nil)
	return problem
}

// TestBorneOut: false alarms are costly, so these must pass.
func TestBorneOut(t *testing.T) {
	for _, test := range []struct{ statement, said string }{
		// Nothing to check.
		{"The user likes cats.", "i like cats"},
		{"用户喜欢猫", "我喜欢猫"},
		{"用户是一名程序员，十分喜欢猫。", "我是程序员，很喜欢猫"},
		{"The user is a programmer.", "I code for a living"},
		{"Pizza is one of the user's favourite foods.", "i really love pizza"},
		// Numbers in other forms.
		{"The user has 2 cats.", "I have two cats"},
		{"The user has two cats.", "I have 2 cats"},
		{"The user is twenty-one years old.", "I'm 21"},
		{"The user turned 30.", "I turned 30 yesterday"},
		{"The user pays $1,000 in rent.", "rent is 1000 dollars"},
		{"The user pays 1000 dollars.", "rent is $1,000.00"},
		{"The user ran 5 km.", "ran 5k today, that is 5km"},
		{"The user earns 120,000 a year.", "i make 120k"},
		{"The user lost 50% of it.", "I lost half of it"},
		{"The user is a parent of two.", "We have twins"},
		{"The user has two pets.", "I have a cat and a dog"},
		{"The user works from nine to five.", "I work 9 to 5"},
		{"用户有三只猫", "我养了3只猫"},
		{"用户有3只猫", "我养了三只猫"},
		{"用户有两个孩子", "我有2个孩子"},
		{"用户花了五百元", "花了500块"},
		{"用户花了500元", "花了五百块"},
		{"用户花了1万2千元", "花了一万二"},
		{"用户花了12000元", "花了1.2万"},
		{"用户花了350元", "花了三百五"},
		{"用户的公司涨薪百分之五十", "公司给我涨了50%"},
		{"用户的公司涨薪50%", "公司给我涨了百分之五十"},
		{"用户身高１８０厘米", "我身高180"},
		{"用户有两个女儿", "我有一对双胞胎女儿"},
		{"用户今年二十五岁", "我25了"},
		// Dates.
		{"The user has a dentist appointment on 2026-11-22.", "dentist tomorrow"},
		{"The user has a dentist appointment on Sunday, November 22, 2026.", "dentist tomorrow"},
		{"The user flies to Rome on the 24th.", "flying to Rome in three days"},
		{"The user meets Bob on Friday, 27 November.", "seeing Bob next Friday"},
		{"The user meets Bob on Friday.", "seeing Bob on friday"},
		{"The user moved in 2025.", "moved last year"},
		{"The user moved to Rome in October 2026.", "moved to Rome last month"},
		{"The user has worked there since 2016.", "I've been working there for ten years"},
		{"The user was born in 1996.", "I'm 30"},
		{"The user is 30 years old.", "I was born in 1996"},
		{"The user's birthday is October 25.", "my birthday is 25 Oct"},
		{"The user's birthday is on May 3rd, 1990.", "born 1990-05-03"},
		{"On 2026-11-21 the user said the heating is broken.", "the heating is broken"},
		{"The user travels over Christmas 2026, from December 24.", "away for christmas"},
		{"The user has the exam in the week of November 23.", "exam next week"},
		{"用户将于2026年11月22日去看牙医", "明天去看牙"},
		{"用户11月25日有考试", "下周三考试"},
		{"用户下周三有考试", "下周三考试"},
		{"用户周日要加班", "明天要加班"},
		{"用户十一月二十四号飞北京", "三天后飞北京"},
		{"用户的生日是5月12日", "我生日五月十二号"},
		{"用户2025年结婚", "去年结的婚"},
		{"用户2026年10月搬家了", "上个月搬家了"},
		{"用户出生于1996年", "我三十岁"},
		{"用户是1990年出生的", "我是90后，90年的"},
		{"用户从2016年起在这家公司工作", "在这家公司干了十年"},
		// Times.
		{"The user meets Bob at 3pm.", "meet Bob at three in the afternoon, 15:00"},
		{"The user meets Bob at 15:00.", "meet Bob at 3pm"},
		{"The user meets Bob at 3:00 PM.", "meeting Bob at 3"},
		{"The user meets Bob at 8:30.", "meeting Bob at half past eight"},
		{"The user has lunch at 12:00.", "lunch at noon"},
		{"The user's train leaves at 17:00.", "train leaves in two hours"},
		{"用户15:00开会", "下午三点开会"},
		{"用户下午3点开会", "三点开会"},
		{"用户晚上八点半看电影", "20:30的电影"},
		{"用户三点一刻接孩子", "3:15接孩子"},
		{"用户有一点累", "有点累"},
		// Names.
		{"The user's sister is called Anna.", "my sister anna lives there"},
		{"The user works at Google in New York City.", "i work at google in nyc"},
		{"The user lives in the UK.", "i live in the united kingdom"},
		{"The user speaks Spanish.", "i'm from spain, so you know what I speak"},
		{"The user is German.", "I come from Germany"},
		{"The user, Alice, likes cats.", "i like cats"},
		{"Alice's friend likes Mira.", "my friend likes you"},
		{"The user lives in Beijing.", "I live in 北京"},
		{"The user has an iPhone 15 Pro.", "got an iphone 15 pro"},
		{"The user loves the film \"Spirited Away\".", "spirited away is my favourite"},
		{"The user plays Christmas songs with Mom.", "xmas songs with my mother"},
		{"用户的女儿叫小红", "我女儿叫小红"},
		{"用户希望助手叫他老王", "叫我老王就行"},
		{"用户喜欢叫外卖", "我爱点外卖"},
		{"用户喜欢《三体》", "三体真好看"},
		{"用户喜欢《三體》", "我喜欢《三体》"},
		{"用户在用ＧＩＴＨＵＢ", "我在用github"},
		{"用户在学Python", "我在学python"},
		{"用户最喜欢的作家是加西亚·马尔克斯", "我最喜欢加西亚·马尔克斯"},
		{"用户说：“我对花生过敏。”", "请记住：我对花生过敏。"},
		{"The user said: \"I'm allergic to nuts\"", "remember: I'm allergic to nuts"},
		// Codes.
		{"The user's e-mail is Ann@example.com.", "mail me at ann@example.com"},
		{"The user's site is https://example.com/a.", "see example.com/a, that is https://example.com/a"},
		{"The user flies with LH123.", "flight lh 123"},
		{"用户的航班是CA1234", "航班ca1234"},
		// As models write.
		{"The user is planning a two-week trip to Japan in April 2027.", "thinking of going to japan for two weeks next april"},
		{"The user's favorite band is Radiohead.", "radiohead is the best band ever"},
		{"The user graduated from MIT with a degree in Computer Science.", "i did cs at MIT"},
		{"The user adopted a golden retriever named Max last month (October 2026).", "we adopted a golden retriever last month! his name's max"},
		{"The user is married to a man named John, whom the user met in 2015.", "my husband john and i met in 2015"},
		{"The user's mother, Linda, turns 60 on December 3.", "my mom linda turns 60 on dec 3rd"},
		{"The user wakes up at 6:30 AM every weekday.", "i get up at 6:30 every weekday"},
		{"The user weighs 75 kg and wants to lose 5 kg.", "i'm 75 kilos, want to drop 5"},
		{"The user spent $7.35 on a sandwich on November 21, 2026.", "paid $7.35 for a sandwich"},
		{"The user has a meeting with Sarah from Marketing at 10am on Monday, November 23.", "meeting w/ sarah from marketing 10am monday"},
		{"The user prefers dark mode and uses VS Code on macOS.", "i use vscode on a mac, always dark mode"},
		{"The user is vegetarian and allergic to shellfish.", "vegetarian here, plus shellfish allergy"},
		{"The user has been learning Spanish for about six months.", "been learning spanish for half a year"},
		{"The user works remotely as a senior software engineer for Acme Corp.", "senior swe at acme corp, fully remote"},
		{"The user lives in San Francisco.", "i'm in SF"},
		{"The user's daughter Emma started kindergarten this year.", "emma, my daughter, just started kindergarten"},
		{"The user has an interview at Amazon next Thursday, 2026-11-26.", "got an interview at amazon next thursday"},
		{"The user quit smoking three years ago, in 2023.", "quit smoking 3 years ago"},
		{"The user is a Pisces born on March 3.", "born march 3, so pisces"},
		{"The user ran the Boston Marathon in under four hours.", "did boston marathon sub 4h"},
		{"The user's flight UA 2311 departs at 5:45 PM on Dec 1.", "flight UA2311 leaves 17:45 on 1 December"},
		{"The user reads about 20 pages a day of \"Dune\".", "reading dune, 20 pages a day"},
		{"The user has an appointment with Dr. Lee at 9 o'clock tomorrow (2026-11-22).", "dr lee tomorrow at nine"},
		{"The user's Wi-Fi password is hunter2.", "my wifi password: hunter2"},
		{"The user met Tom on the weekend of November 14.", "met tom last weekend"},
		{"The user has lived in Canada since 2019 and became a citizen in 2024.", "in canada since 2019, citizen since 2024"},
		{"用户计划2027年4月去日本旅行两周", "明年四月想去日本玩两个星期"},
		{"用户的妈妈60岁生日是12月3日", "我妈12月3号六十大寿"},
		{"用户每天早上6:30起床", "我每天早上六点半起床"},
		{"用户体重75公斤，想减5公斤", "我75kg，想瘦10斤"},
		{"用户在2026年11月21日花了10.65元买水果", "水果花了10块6毛5"},
		{"用户下周一（11月23日）上午10点与市场部开会", "下周一上午十点要和市场部开会"},
		{"用户在腾讯工作了3年，担任后端工程师", "在腾讯写了三年后端"},
		{"用户的猫叫咪咪，今年2岁", "我家猫咪咪两岁了"},
		{"用户三年前（2023年）戒烟", "我三年前戒的烟"},
		{"用户住在北京市朝阳区", "家在北京朝阳"},
		{"用户和女友计划于2027年春节结婚", "明年春节和女朋友结婚"},
		{"用户的航班是12月1日17:45的CA1501", "CA1501，十二月一号下午五点四十五飞"},
		{"用户大学毕业于2018年，学的是计算机专业", "我18年大学毕业，计算机的"},
		{"用户近视500度", "我近视五百度"},
		{"用户正在追《繁花》，已经看到第12集", "在看繁花，看到十二集了"},
		{"用户每周跑步三次，每次5公里", "一周跑3次，每次五公里"},
		{"用户昨天（2026年11月20日）感冒了", "昨天感冒了"},
		{"用户最近在准备2027年3月的考研复试", "在准备明年三月的考研复试"},
		{"用户的工资每月1.5万元", "月薪一万五"},
		{"用户的工资每月15000元", "月薪15k"},
		{"用户用的是iPhone 15和MacBook", "我用iphone15和macbook"},
		{"用户不吃香菜，喜欢吃辣", "香菜不吃，爱吃辣"},
		{"用户凌晨两点才睡", "我半夜2点才睡"},
		{"用户将在双十一买一台电脑", "双11准备买台电脑"},
		{"用户一周有两天在家办公", "每周在家办公两天"},
		{"用户的女儿上小学二年级", "闺女小学二年级"},
		{"用户2024年9月入职字节跳动", "24年9月进的字节跳动"},
	} {
		if problem := check(test.statement, test.said); problem != "" {
			t.Errorf("%q from %q: %s", test.statement, test.said, problem)
		}
	}
}

// TestNotBorneOut: the detail that nobody mentioned is named.
func TestNotBorneOut(t *testing.T) {
	for _, test := range []struct{ statement, said, detail string }{
		{"The user has 3 cats.", "I have two cats", "3"},
		{"The user has three cats.", "I have cats", "three"},
		{"The user has 3 cats.", "I have 30 cats and 13 dogs", "3"},
		{"用户想减6公斤", "我75kg，想瘦10斤", "6"},
		{"The user pays $1,200 in rent.", "rent is 1000 dollars", "1,200"},
		{"The user is 31 years old.", "I'm 21", "31"},
		{"用户有三只猫", "我养了两只猫", "三"},
		{"用户花了五百元", "花了五千块", "五百"},
		{"用户花了500元", "花了不少钱", "500"},
		{"用户涨薪百分之五十", "公司给我涨薪了", "百分之五十"},
		{"The user has a dentist appointment on 2026-11-25.", "dentist tomorrow", "2026-11-25"},
		{"The user has a dentist appointment on Thursday.", "dentist tomorrow", "thursday"},
		{"The user moved in 2021.", "moved last year", "2021"},
		{"The user's birthday is May 4.", "my birthday is in the spring, I have a party", "may 4"},
		{"用户将于2026年11月25日去看牙医", "明天去看牙", "2026年11月25日"},
		{"用户周五有考试", "周三考试", "周五"},
		{"用户的生日是5月13日", "我生日五月十二号", "5月13日"},
		{"The user meets Bob at 4pm.", "meet Bob at 3pm", "4pm"},
		{"The user meets Bob at 3am.", "meet Bob at 3pm", "3am"},
		{"用户下午四点开会", "下午三点开会", "下午四点"},
		{"The user's sister is called Anna.", "my sister lives there", "Anna"},
		{"The user's sister is called Hanna.", "my sister Eve lives there", "Hanna"},
		{"The user works at Google.", "i work at a big company", "Google"},
		{"The user lives in Paris, in France.", "i live in france", "Paris"},
		{"用户的女儿叫小红", "我女儿五岁了", "小红"},
		{"用户喜欢《三体》", "我喜欢科幻小说", "三体"},
		{"用户在学Python", "我在学编程", "Python"},
		{"用户最喜欢的作家是加西亚·马尔克斯", "我最喜欢看小说", "加西亚·马尔克斯"},
		{"The user's e-mail is bob@example.com.", "mail me at ann@example.com", "bob@example.com"},
		{"The user flies with LH124.", "flight lh123", "lh124"},
	} {
		problem := check(test.statement, test.said)
		if !strings.Contains(problem, test.detail) {
			t.Errorf("%q from %q: %q, want it to name %q", test.statement, test.said, problem, test.detail)
		}
	}
}

// TestElsewhere: what the same speaker said in another message is borne out by citing that as well.
func TestElsewhere(t *testing.T) {
	c := evidence.NewChecker([]evidence.Said{
		{Text: "i'm from Rome", At: at}, {Text: "his name is Rex", At: at}, {Text: "we got a dog yesterday", At: at}, {Text: "Who is Max?", At: at},
	}, nil)
	more, problem := c.Check("The user got a dog called Rex on 2026-11-20.", []int{2}, []int{0, 1})
	if problem != "" || len(more) != 1 || more[0] != 1 {
		t.Errorf("cites %v as well; %q", more, problem)
	}
	more, problem = c.Check("The user got a dog called Max.", []int{2}, []int{0, 1})
	if problem == "" || more != nil {
		t.Errorf("cites %v as well; %q", more, problem)
	}
}

// TestDateOfTwoMessages: A correction names the day, and what it corrects the month.
func TestDateOfTwoMessages(t *testing.T) {
	for text, known := range map[string]bool{
		"The concert is on 2027-03-24.": true, "The concert is on 2027-04-24.": false, "The concert is on 2027-03-25.": false,
	} {
		problem := check(text, "tickets for march 14th", "ahh no, 24th")
		if (problem == "") != known {
			t.Errorf("%s: %q", text, problem)
		}
	}
	if problem := check("用户的预产期是2027-01-26。", "预产期一月二十号", "刚翻了产检本，二十六号才对"); problem != "" {
		t.Error(problem)
	}
}

func FuzzCheck(f *testing.F) {
	f.Add("用户2026年11月25日花了3.5万元去看《三体》", "下周三，三万五")
	f.Add("The user meets Ann-Marie at half past 3 on May 3rd", "in a couple of weeks, 24/7")
	f.Fuzz(func(t *testing.T, statement, said string) {
		if problem := check(statement, said+"\n"+statement); strings.Contains(problem, "name") && !strings.Contains(said, "\"") {
			t.Errorf("%q is not in itself: %s", statement, problem)
		}
	})
}

// TestWeekdayWithoutMidnight: the day of the week of a date is that of the calendar, also where the clock is put forward at midnight.
func TestWeekdayWithoutMidnight(t *testing.T) {
	havana, err := time.LoadLocation("America/Havana") // 2026-03-08, a Sunday, begins there at 01:00
	if err != nil {
		t.Fatal(err)
	}
	c := evidence.NewChecker([]evidence.Said{{Text: "the dentist is on march 8", At: time.Date(2026, 3, 2, 12, 0, 0, 0, havana)}}, nil)
	if _, problem := c.Check("The user sees the dentist on Sunday.", []int{0}, nil); problem != "" {
		t.Error(problem)
	}
}
