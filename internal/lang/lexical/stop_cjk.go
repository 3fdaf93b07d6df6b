package lexical

import (
	"strings"
	"unicode/utf8"
)

// isFunctionChar reports whether a character carries grammar: particles, pronouns, question words, copulas, conjunctions and the
// commonest prepositions and modal verbs, in both Chinese spellings; all hiragana; Korean particles.
func isFunctionChar(r rune) bool {
	switch r {
	case '的', '地', '得', '了', '着', '过', '著', '過', '之', '其', '而', '且', '并', '並', '于', '於', '以', '因', '为', '為', '所', '则', '則',
		'吗', '嗎', '呢', '吧', '啊', '呀', '嘛', '么', '麼', '哦', '噢', '喔', '哈', '嗯', '啦', '咯', '哟', '哇', '唉', '诶', '欸',
		'我', '你', '您', '妳', '他', '她', '它', '们', '們', '咱', '俺', '谁', '誰', '这', '這', '那', '哪', '此', '某', '每', '各',
		'什', '怎', '几', '幾', '何', '是', '在', '有', '没', '沒', '不', '别', '別', '和', '与', '與', '及', '或', '跟', '同',
		'就', '都', '也', '还', '還', '又', '才', '再', '很', '太', '更', '最', '挺', '只', '已', '曾', '正', '将', '將',
		'被', '把', '给', '給', '让', '讓', '从', '從', '到', '对', '對', '向', '往', '由', '但', '却', '卻', '如', '若',
		'会', '會', '能', '可', '要', '请', '請', '个', '個', '些', '一', '来', '來':
		return true
	}
	if 0x3041 <= r && r <= 0x309F {
		return true
	}
	switch r {
	case '은', '는', '이', '가', '을', '를', '에', '의', '도', '로', '와', '과', '요', '다':
		return true
	}
	return false
}

// isParticle reports whether a function character is hardly ever part of a content word, so that a pair with it carries no content.
// Other function characters are: 吉他, 酒吧, 过敏, 会议, 现在.
func isParticle(r rune) bool {
	switch r {
	case '的', '了', '吗', '嗎', '呢', '啊', '呀', '嘛', '么', '麼', '哦', '噢', '喔', '嗯', '啦', '哟', '唉', '诶', '欸',
		'我', '你', '您', '妳', '她', '它', '们', '們', '咱', '俺', '谁', '誰', '这', '這', '那', '哪', '什', '怎', '是':
		return true
	}
	return false
}

// isDateUnit reports whether a character follows the number in most dates and times.
func isDateUnit(r rune) bool {
	switch r {
	case '年', '月', '日', '号', '號', '点', '點', '时', '時', '分', '년', '월', '일':
		return true
	}
	return false
}

// functionPhraseLen is the length in bytes of the function phrase at the beginning of a run, or 0. Function phrases are
// question words and the words of requests to a memory.
func functionPhraseLen(run string) int {
	for chars := 4; chars >= 2; chars-- {
		n := 3 * chars // every phrase below is of three-byte characters
		if n <= len(run) && isFunctionPhrase(run[:n]) {
			return n
		}
	}
	return 0
}

func isFunctionPhrase(p string) bool {
	switch p {
	case "什么", "什麼", "甚麼", "怎么", "怎麼", "怎样", "怎樣", "怎么样", "怎麼樣", "为什么", "為什麼", "为啥", "為啥", "干嘛", "多少",
		"哪里", "哪裡", "哪裏", "哪儿", "哪兒", "哪些", "如何", "是否", "能否", "可以", "可不可", "什么时候", "什麼時候", "啥时候", "何时",
		"知道", "告诉", "告訴", "记得", "記得", "请问", "請問", "麻烦你", "帮我", "幫我", "说说", "說說", "一下", "自己",
		"还是", "或者", "以及", "因为", "因為", "所以", "但是", "如果", "关于", "關於", "的话", "的話",
		"です", "ます", "した", "から", "まで", "なに", "誰が", "何が", "何を", "教えて", "뭐야", "무엇":
		return true
	}
	return false
}

// subjectLen is the length in bytes of the subject that opens stored statements, or 0. 用户名 and the like are content.
func subjectLen(run string) int {
	for _, subject := range [...]string{"用户", "用戶", "使用者", "ユーザー", "사용자"} {
		rest, found := strings.CutPrefix(run, subject)
		if !found {
			continue
		}
		if len(rest) >= utf8.UTFMax {
			for _, compound := range [...]string{"名", "量", "群", "端", "体验", "體驗", "界面", "增长", "增長", "画像", "畫像", "研究", "协议"} {
				if strings.HasPrefix(rest, compound) {
					return 0
				}
			}
		}
		return len(subject)
	}
	return 0
}
