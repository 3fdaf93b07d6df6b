package reconcile

import (
	"strings"
	"unicode/utf8"

	"github.com/memsidecar/memsidecar/internal/lang"
	"github.com/memsidecar/memsidecar/internal/lang/lazyregexp"
)

// uniqueZH are relatives that a user has only once.
const uniqueZH = `(?:的?(?P<o>父母|爸妈|妈妈|母亲|老妈|爸爸|父亲|老爸|妻子|老婆|太太|媳妇|丈夫|老公|女朋友|女友|男朋友|男友|老板|上司|领导|经理))?`

// petZH are pets, and people with one name.
const petZH = `(?:的|家的?|家里的?)?(?P<o>狗狗|小狗|狗|猫咪|小猫|猫猫|猫|宠物|兔子|仓鼠|鹦鹉|妈妈|母亲|爸爸|父亲|妻子|老婆|丈夫|老公|女朋友|女友|男朋友|男友|老板|上司|领导)`

const numeralZH = `[\d一二三四五六七八九十百零两半.]+`

// patternsZH find what fills a slot in a clause that begins with 用户.
var patternsZH = []pattern{
	p("home", `^用户`+uniqueZH+`(?:一家)?(?:现)?(?:居住在|居住于|住在|住到|定居在|定居于|定居到|定居|搬到|搬去|搬来|搬回|搬家到|搬家去|移居到|移居|迁居到|迁居|安家在|的家在|家在|`+
		`家住)了?(?P<v>[^的]+?)(?:生活|居住|定居|住|工作)?了?$`, placeZH),
	p("home", `^用户`+uniqueZH+`(?:一家)?在(?P<v>[^的]+?)(?:生活|居住|定居|常住|安家)了?$`, placeZH),
	p("home", `^用户`+uniqueZH+`住(?P<v>[^在到的了院校宿酒宾旅进不过着].+)$`, placeZH),
	ends("home", `^用户(?:从(?P<v>.+?)(?:搬走|搬出|搬离)|搬离|搬出)了?$`),
	p("name", `^用户(?:的)?(?:名字|姓名|本名|全名|真名)(?:是|叫做?|为)(?P<v>.+)$`, nil),
	p("name", `^用户(?:名叫|叫做?)(?P<v>.+)$`, calledZH),
	wish(p("form of address", `^用户.{0,6}(?:希望|让|要|要求|请|喜欢)(?:助手|大家|别人)?(?:以后|今后|从现在起)?(?:都)?(?:被)?(?:叫|称呼|喊)(?:用户|他|她|ta|自己|其)?(?:为|作|`+
		`做)?(?P<v>.+)$`, calledZH)),
	wish(p("form of address", `^用户(?:叫|称呼|喊)用户(?P<v>.+)$`, nil)),
	wish(ends("form of address", `^用户.{0,6}(?:别|不要|不许)(?:再)?(?:叫|称呼|喊)(?:用户|他|她)(?P<v>.+)$`)),
	wish(p("form of address", `^用户(?:的)?称呼(?:是|为|改成|改为)(?P<v>.+)$`, nil)),
	wish(p("language of answers", `^用户(?:希望|要求|让|请|想|喜欢|偏好).*用(?P<v>中文|英文|英语|汉语|普通话|粤语|日语|日文|法语|德语|韩语|西班牙语|俄语|文言文)(?:来)?(?:进行)?(?:回答|回复|`+
		`交流|聊天|说|讲|写|沟通|对话).*$`, nil)),
	p("age", `^用户`+uniqueZH+`(?:的?年龄是|满|是)?(?P<v>`+numeralZH+`)(?:周)?岁了?$`, nil),
	p("birthday", `^用户`+uniqueZH+`(?:出生于|生于)(?P<v>.*\d.*|.*[一二三四五六七八九十]月.*)$`, nil),
	p("work/employer", `^用户`+uniqueZH+`(?:是)?在(?P<v>.+?)(?:上班|任职|就职|工作|当\PP{1,8}|做\PP{1,8})了?$`, orgZH),
	p("work/place", `^用户`+uniqueZH+`在(?P<v>.+?)(?:上班|工作)了?$`, townZH),
	p("work/place", `^用户(?:被)?(?:调到|调去|派到|外派到|调往)了?(?P<v>.+?)(?:上班|工作)?了?$`, townZH),
	p("work/employer", `^用户(?:入职|跳槽到|跳槽去|加入|加盟|换到|转到)了?(?P<v>.+?)(?:工作|上班)?了?$`, orgZH),
	ends("work/employer", `^用户从(?P<v>.+?)(?:离职|辞职|跳槽|被裁|裁员|辞)了?$`),
	ends("work/employer", `^用户(?:离职|辞职|被裁员?|失业|被辞退|被炒鱿鱼|把工作辞|辞掉了?工作|辞了工作|辞掉了?(?P<v>.+?)的工作|辞了(?P<x>.+?)的工作)了?$`),
	ends("work", `^用户(?:正式)?退休了?$`),
	p("work/title", `^用户`+uniqueZH+`(?:是|当上?|做|担任|从事|成为|成|转行做|改行做|改行当|转行当|升职为|晋升为|升为|升任|被提拔为)了?(?:一名|一个|一位|个|名|了)?(?P<v>.{0,8}(?:程序员|工程师|`+
		`老师|教师|医生|护士|律师|会计|设计师|学生|研究生|博士生|大学生|高中生|初中生|司机|厨师|经理|公务员|警察|销售|记者|编辑|作家|画家|摄影师|翻译|顾问|店长|主管|总监|分析师|科学家|研究员|教授|演员|歌手|自由职业者|组长|`+
		`架构师|药剂师|理发师|快递员|外卖员|客服|文员|出纳|审计|军人|消防员|飞行员|导游))了?$`, nil),
	p("school", `^用户(?:就读于|在(?P<x>.+?)(?:上学|读书|读大学|念书|就读)|转学到|转到)(?P<v>.*(?:大学|学院|中学|小学|高中|学校))$`, nil),
	p("school", `^用户在(?P<v>.+?)(?:上学|读书|读大学|念书|就读|读研|读博)$`, nil),
	relation("single", `^用户`+uniqueZH+`(?:是)?(?:单身|未婚|分手|恢复单身|和.{1,8}分手)(?:了|的|狗)?.{0,4}$`),
	ends("name of boyfriend", `^用户(?:和.{1,8})?(?:分手|离婚)了?$`),
	ends("name of girlfriend", `^用户(?:和.{1,8})?(?:分手|离婚)了?$`),
	relation("dating", `^用户`+uniqueZH+`(?:在谈恋爱|谈恋爱|恋爱|有(?:了)?(?:女|男)朋友|交(?:了)?(?:女|男)朋友|有(?:了)?对象|脱单|找到(?:了)?对象)了?$`),
	relation("engaged", `^用户`+uniqueZH+`(?:和.{1,8})?订婚了?$`),
	relation("married", `^用户`+uniqueZH+`(?:和.{1,8})?(?:已婚|结婚|领证|领了结婚证|成家)了?$`),
	relation("divorced", `^用户`+uniqueZH+`(?:和.{1,8})?(?:离婚|离异|分居)了?$`),
	relation("widowed", `^用户`+uniqueZH+`丧偶.{0,2}$`),
	p("weight", `^用户`+uniqueZH+`的?(?:体重)(?:是|有|为|降到|涨到|掉到|减到|增加到|升到|到|变成)?了?(?P<v>`+numeralZH+`.*)$`, nil),
	p("weight", `^用户`+uniqueZH+`(?:瘦到|胖到|减到|减肥到|减重到)了?(?P<v>`+numeralZH+`(?:斤|公斤|千克|kg|KG|磅).*)$`, nil),
	p("height", `^用户`+uniqueZH+`的?(?:身高)(?:是|有|为|长到|到)?了?(?P<v>`+numeralZH+`.*)$`, nil),
	p("shoe size", `^用户穿(?P<v>`+numeralZH+`)码的?鞋子?$`, nil),
	p("shoe size", `^用户的?鞋码(?:是|为)?(?P<v>`+numeralZH+`)码?$`, nil),
	p("", `^用户`+petZH+`(?:的)?(?P<a>名字|小名)?(?:是叫|叫做?|名叫|改名叫|改叫|改名为|改名|是)(?P<v>.+)$`, petNameZH),
	p("", `^用户(?:的|家的?)?新?(?P<a>[^,是为]{1,16}?)(?:是|为|改成|改为|换成|变成|改到|换到|更新为|调整为|变为|降到|涨到|升到|降为|涨为)了?(?P<v>.+)$`, nil),
	turn(p("", `^用户要求助手(?:把|将)(?:用户的?)?(?P<a>[^,]{1,16}?)(?:从(?P<f>.+?))?(?:改成|改为|改回|换成|改到|更新为|调成|调到|调整为|变更为|提高到|降到)了?(?P<v>.+)$`, nil)),
	weak(wish(p("", `^用户要求助手(?:把|将)(?P<a>[^,]{1,16}?)(?:设成|设为|定为|记为)了?(?P<v>.+)$`, nil))),
	weak(p("", `^(?P<a>总?预算|截止日期|地址|邮箱|电话)(?:是|为|定为|设为)(?P<v>.+)$`, nil)),
	p("", `^用户(?:把|将)(?:自己的?)?(?P<a>[^,]{1,16}?)(?:改成|改为|换成|设成|设为|改到|更新为|调成|换为|变更为)了?(?P<v>.+)$`, nil),
	p("", `^用户(?:换|改|办)了?(?:个|一个)?新?的?(?P<a>[^,]{1,8}?)(?:是|为|:|：|,)(?P<v>.*[\dA-Za-z].*)$`, nil),
}

// attributesZH are nouns of which something has one, with the name of the slot.
var attributesZH = map[string]string{
	"名字": "name", "姓名": "name", "小名": "nickname", "昵称": "nickname", "网名": "nickname", "外号": "nickname", "年龄": "age", "生日": "birthday",
	"手机号": "phone", "手机号码": "phone", "电话": "phone",
	"电话号码": "phone", "联系电话": "phone", "邮箱": "email", "邮箱地址": "email", "电子邮箱": "email", "邮件地址": "email", "微信": "wechat", "微信号": "wechat",
	"QQ": "qq", "QQ号": "qq", "qq号": "qq", "地址": "address", "住址": "address",
	"家庭住址": "address", "家庭地址": "address", "收货地址": "address (收货)", "职业": "work/title", "工作": "work/title", "职位": "work/title",
	"岗位": "work/title", "公司": "work/employer", "单位": "work/employer", "工作单位": "work/employer",
	"学校": "school", "专业": "major", "身高": "height", "体重": "weight", "鞋码": "shoe size", "尺码": "size", "时区": "time zone", "籍贯": "hometown",
	"老家": "hometown", "国籍": "nationality", "血型": "blood type", "星座": "zodiac sign",
	"属相": "animal sign", "生肖": "animal sign", "婚姻状况": "relationship", "感情状况": "relationship", "母语": "native language",
	"车牌": "license plate", "车牌号": "license plate", "房租": "rent", "月薪": "salary", "工资": "salary", "年薪": "salary (年)",
	"密码": "password", "账号": "account", "用户名": "username", "学号": "student number", "工号": "staff number", "目标体重": "target weight",
	"预算": "budget", "截止日期": "deadline", "婚期": "wedding", "婚礼": "wedding", "预产期": "due date", "座位": "seat", "工位": "desk",
}

// favourites are what of all X is liked most.
var favouriteZH = lazyregexp.New(`^(?:的)?最(?:喜欢|喜爱|爱)(?:的|吃的|喝的|看的|听的|玩的|读的)?.{1,10}$`)

var ownerZH = lazyregexp.New(`^(?:的)?(?P<o>.{1,6}?)的$`)

// attributeZH is the slot of an attribute's name, or "" when there may be several.
func attributeZH(name string) string {
	name = strings.TrimPrefix(strings.TrimPrefix(name, "自己的"), "的")
	if slot, ok := attributesZH[name]; ok {
		return slot
	}
	if favouriteZH.MatchString(name) {
		if !strings.Contains(name, "的") { // "最喜欢的" something of which the kind is not told
			return ""
		}
		return "favourite " + name
	}
	runes := []rune(name)
	for n := min(len(runes)-1, 6); n > 1; n-- {
		slot, ok := attributesZH[string(runes[len(runes)-n:])]
		if !ok {
			continue
		}
		before := string(runes[:len(runes)-n])
		if owner := ownerZH.FindStringSubmatch(before); owner != nil {
			if !uniqueOwnersZH[owner[1]] {
				return "" // there may be two sisters
			}
			return slot + " of " + canonical(owner[1])
		}
		if uniqueOwnersZH[before] {
			return slot + " of " + canonical(before)
		}
		for several := range severalZH {
			if strings.Contains(before, several) {
				return ""
			}
		}
		return slot + " (" + before + ")"
	}
	return ""
}

var (
	uniqueOwnersZH = lang.Set(`父母 爸妈 妈妈 母亲 老妈 爸爸 父亲 老爸 妻子 老婆 太太 媳妇 丈夫 老公 女朋友 女友 男朋友 男友 老板 上司 领导 经理 狗 狗狗 小狗 猫 猫咪 小猫 宠物`)
	severalZH      = lang.Set(`朋友 姐姐 妹妹 姐 妹 哥 弟 同事 同学 儿子 女儿 孩子 邻居 叔 姨 舅 姑 侄 学生 客户 室友 表 堂 闺蜜`)
	noPlaceZH      = lazyregexp.New(`^(?:新|隔壁|更|一|两|自己|公司|宿舍|学校|医院|酒店|宾馆|[二三四五六七八九十\d]+楼|这|那|哪|租|朋友|父母|爸妈|外地|别处|楼|家里|老家|郊区|市区|城里|乡下)|` +
		`(?:公寓|宿舍|酒店|一起|出租屋|合租|别墅|平房|的房子|家里)$`)
	wordsZH = lazyregexp.New(`^(?:外卖|车|滴滴|出租|快递|人|醒|苦|停|好|餐|什么|助手|大家|朋友|妈|爸|一声|了|来了|上了|用户)`)
	townsZH = lazyregexp.New(`^(?:北京|上海|广州|深圳|杭州|南京|苏州|成都|重庆|武汉|西安|天津|长沙|郑州|青岛|大连|厦门|宁波|无锡|合肥|福州|济南|昆明|贵阳|南宁|海口|三亚|沈阳|哈尔滨|长春|` +
		`石家庄|太原|兰州|西宁|银川|拉萨|乌鲁木齐|呼和浩特|珠海|东莞|佛山|香港|澳门|台北|台湾|高雄|新加坡|东京|大阪|首尔|纽约|旧金山|洛杉矶|西雅图|伦敦|巴黎|柏林|悉尼|墨尔本|多伦多|温哥华|日本|美国|英国|法国|德国|韩国|加拿大|` +
		`澳大利亚|中国|国外|国内|外地|老家|海外|浦东|海淀|朝阳)|(?:省|市|县|区|镇|国|州)$`)
	noOrgZH = lazyregexp.New(`^(?:家|家里|这|那|一家|一个|外地|夜|白天|晚上|外面|同一|现场|努力|认真|加班|忙|找|校|车|网上|线上)`)
	petIsZH = lazyregexp.New(`只|条|岁|公的|母的|色|大|小(?:型)?|犬$|猫$|狗$|品种|可爱|医生|老师|人$|很|病|的$`)
)

// placeZH reports whether a value is a place to live in, such as a town, and not a flat.
func placeZH(value string) bool {
	return value != "" && utf8.RuneCountInString(value) <= 20 && !noPlaceZH.MatchString(value)
}

func townZH(value string) bool { return townsZH.MatchString(value) }

func orgZH(value string) bool {
	return value != "" && !townsZH.MatchString(value) && !noOrgZH.MatchString(value) && utf8.RuneCountInString(value) <= 20
}

// calledZH reports whether a value is a name: "叫外卖" names no one.
func calledZH(value string) bool {
	return value != "" && utf8.RuneCountInString(value) <= 12 && !wordsZH.MatchString(value)
}

func petNameZH(value string) bool { return calledZH(value) && !petIsZH.MatchString(value) }
