package compare

import (
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"golang.org/x/text/language"
	"golang.org/x/text/language/display"

	"github.com/memsidecar/memsidecar/internal/lang/lexical"
)

// name is a name and how it is written for comparing.
type name struct {
	words string
	as    string
}

// names holds the names of countries, of the more common languages (as in Unicode's CLDR, English and Chinese) and of cities, by first
// byte, longest first.
var names = sync.OnceValue(func() *[256][]name {
	all := &[256][]name{}
	seen := map[string]bool{}
	add := func(words, as string) {
		words = lexical.Simplified(strings.ToLower(words))
		if words == "" || common[words] || seen[words] {
			return
		}
		seen[words] = true
		all[words[0]] = append(all[words[0]], name{words, as})
	}
	for group := range strings.SplitSeq(aliases, "\n") {
		as, list, _ := strings.Cut(strings.TrimSpace(group), ": ")
		for words := range strings.SplitSeq(list, ", ") {
			add(words, as)
		}
	}
	english, chinese := display.English.Regions(), display.SimplifiedChinese.Regions()
	for _, r := range language.Supported.Regions() {
		if r.IsCountry() && r.Canonicalize() == r {
			as := "geo-" + strings.ToLower(r.String())
			add(english.Name(r), as)
			add(chinese.Name(r), as)
		}
	}
	for l := range strings.FieldsSeq(languages) {
		tag, as := language.MustParse(l), "lang-"+l
		add(display.English.Languages().Name(tag), as)
		add(display.SimplifiedChinese.Languages().Name(tag), as)
	}
	for i := range all {
		slices.SortStableFunc(all[i], func(a, b name) int { return len(b.words) - len(a.words) })
	}
	return all
})

// common are names that are words of another meaning as well, or of another place.
var common = map[string]bool{"turkey": true, "chad": true, "jordan": true, "georgia": true, "guinea": true, "polish": true, "un": true}

const languages = "en zh yue fr de es pt it ru ja ko ar hi th vi id ms tr nl sv da nb fi el he uk cs hu ro fa"

// aliases are other names of countries and languages, and of the best-known cities. The first of each line is the canonical form.
const aliases = `geo-us: usa, u.s., u.s.a., the us, the united states, united states of america, 美利坚
	geo-gb: uk, u.k., the uk, the united kingdom, great britain, britain
	geo-kr: korea, south korea, 韩国, 南韩
	geo-kp: north korea, 朝鲜, 北韩
	geo-ae: uae, the uae, united arab emirates, 阿联酋
	geo-nl: holland, the netherlands
	geo-ph: the philippines
	geo-cz: czech republic, the czech republic, czechia, 捷克
	geo-nz: new zealand, 新西兰
	geo-tw: taiwan, 台湾
	geo-hk: hong kong, 香港
	geo-mo: macau, macao, 澳门
	geo-tr: türkiye, 土耳其
	lang-zh: mandarin, chinese, 中文, 汉语, 普通话, 国语
	lang-en: english, 英语, 英文
	lang-yue: cantonese, 粤语, 广东话
	lang-ja: japanese, 日语, 日文
	lang-ko: korean, 韩语, 韩文
	lang-fr: french, 法语, 法文
	lang-de: german, 德语, 德文
	lang-ru: russian, 俄语, 俄文
	lang-es: spanish, 西班牙语
	city-beijing: beijing, peking, 北京市, 北京
	city-shanghai: shanghai, 上海市, 上海
	city-guangzhou: guangzhou, canton, 广州市, 广州
	city-shenzhen: shenzhen, 深圳市, 深圳
	city-hangzhou: hangzhou, 杭州市, 杭州
	city-nanjing: nanjing, 南京市, 南京
	city-suzhou: suzhou, 苏州市, 苏州
	city-chengdu: chengdu, 成都市, 成都
	city-chongqing: chongqing, 重庆市, 重庆
	city-wuhan: wuhan, 武汉市, 武汉
	city-xian: xi'an, xian, 西安市, 西安
	city-tianjin: tianjin, 天津市, 天津
	city-changsha: changsha, 长沙市, 长沙
	city-zhengzhou: zhengzhou, 郑州市, 郑州
	city-qingdao: qingdao, 青岛市, 青岛
	city-dalian: dalian, 大连市, 大连
	city-xiamen: xiamen, 厦门市, 厦门
	city-ningbo: ningbo, 宁波市, 宁波
	city-kunming: kunming, 昆明市, 昆明
	city-shenyang: shenyang, 沈阳市, 沈阳
	city-harbin: harbin, 哈尔滨市, 哈尔滨
	city-jinan: jinan, 济南市, 济南
	city-hefei: hefei, 合肥市, 合肥
	city-fuzhou: fuzhou, 福州市, 福州
	city-taipei: taipei, 台北市, 台北
	city-kaohsiung: kaohsiung, 高雄市, 高雄
	city-tokyo: tokyo, 东京
	city-osaka: osaka, 大阪
	city-kyoto: kyoto, 京都
	city-seoul: seoul, 首尔
	city-bangkok: bangkok, 曼谷
	city-hanoi: hanoi, 河内
	city-kuala-lumpur: kuala lumpur, 吉隆坡
	city-jakarta: jakarta, 雅加达
	city-manila: manila, 马尼拉
	city-delhi: delhi, 新德里, new delhi
	city-mumbai: mumbai, bombay, 孟买
	city-dubai: dubai, 迪拜
	city-istanbul: istanbul, 伊斯坦布尔
	city-cairo: cairo, 开罗
	city-moscow: moscow, 莫斯科
	city-london: london, 伦敦
	city-paris: paris, 巴黎
	city-berlin: berlin, 柏林
	city-munich: munich, 慕尼黑
	city-hamburg: hamburg, 汉堡市
	city-frankfurt: frankfurt, 法兰克福
	city-vienna: vienna, 维也纳
	city-zurich: zurich, zürich, 苏黎世
	city-geneva: geneva, 日内瓦
	city-rome: rome, 罗马
	city-milan: milan, 米兰
	city-madrid: madrid, 马德里
	city-barcelona: barcelona, 巴塞罗那
	city-lisbon: lisbon, 里斯本
	city-amsterdam: amsterdam, 阿姆斯特丹
	city-brussels: brussels, 布鲁塞尔
	city-copenhagen: copenhagen, 哥本哈根
	city-stockholm: stockholm, 斯德哥尔摩
	city-oslo: oslo, 奥斯陆
	city-helsinki: helsinki, 赫尔辛基
	city-dublin: dublin, 都柏林
	city-edinburgh: edinburgh, 爱丁堡
	city-manchester: manchester, 曼彻斯特
	city-prague: prague, 布拉格
	city-warsaw: warsaw, 华沙
	city-budapest: budapest, 布达佩斯
	city-athens: athens, 雅典
	city-new-york: new york city, new york, nyc, 纽约市, 纽约
	city-los-angeles: los angeles, l.a., 洛杉矶
	city-san-francisco: san francisco, sf, 旧金山, 三藩市
	city-seattle: seattle, 西雅图
	city-boston: boston, 波士顿
	city-chicago: chicago, 芝加哥
	city-houston: houston, 休斯敦, 休斯顿
	city-washington: washington dc, washington d.c., 华盛顿
	city-toronto: toronto, 多伦多
	city-vancouver: vancouver, 温哥华
	city-montreal: montreal, 蒙特利尔
	city-sydney: sydney, 悉尼
	city-melbourne: melbourne, 墨尔本
	city-brisbane: brisbane, 布里斯班
	city-perth: perth, 珀斯
	city-auckland: auckland, 奥克兰
	city-mexico: mexico city, 墨西哥城
	city-sao-paulo: são paulo, sao paulo, 圣保罗
	city-buenos-aires: buenos aires, 布宜诺斯艾利斯`

// named finds names in a folded text, outside of what is cut already.
func named(text string, cuts []cut) []cut {
	all := names()
	var found []cut
	for i := 0; i < len(text); {
		list := all[text[i]]
		han := text[i] >= utf8.RuneSelf
		if !han && i > 0 && letter(text[i-1]) || len(list) == 0 {
			i += width(text[i])
			continue
		}
		next := i + width(text[i])
		for _, n := range list {
			end := i + len(n.words)
			if !strings.HasPrefix(text[i:], n.words) || !han && end < len(text) && letter(text[end]) ||
				slices.ContainsFunc(cuts, func(c cut) bool { return c.start < end && c.end > i }) {
				continue
			}
			found = append(found, cut{i, end, n.as})
			next = end
			break
		}
		i = next
	}
	return found
}

func letter(b byte) bool { return b >= 'a' && b <= 'z' || b >= '0' && b <= '9' }

// width is how many bytes the character has that begins with b.
func width(b byte) int {
	switch {
	case b < 0xc0:
		return 1
	case b < 0xe0:
		return 2
	case b < 0xf0:
		return 3
	}
	return 4
}
