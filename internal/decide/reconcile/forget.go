package reconcile

import (
	"fmt"
	"slices"
	"strings"

	"github.com/memsidecar/memsidecar/internal/decide"
	"github.com/memsidecar/memsidecar/internal/lang"
	"github.com/memsidecar/memsidecar/internal/lang/lazyregexp"
	"github.com/memsidecar/memsidecar/internal/memory"
)

// generic words say that something is to be forgotten, and not what.
var generic = lang.Set(`forget remember rememb memori memory delet delete erase eras remov everyth everything anyth anything someth
	something thing stuff inform information detail
	about tell told say said know mention user like matter topic fact record data all my their his her i me talk
	忘 记 住 忆 删 除 掉 事 情 关 于 说 过 信 息 内 容 所 有 全 部 那 些 东 西 刚 才 话 用 户 一 切`)

var (
	// asking is the wording around what is to be forgotten.
	asking = lazyregexp.New(`(?i)^(?:please |could you |can you )*(?:forget|delete|erase|remove|do not remember)(?: that| what| ` +
		`everything| all| anything)*(?: (?:the user|i) (?:told|said)(?: to)? (?:the assistant|you|it))?(?: (?:about|of|on))? ?|^(?:请|` +
		`麻烦)?(?:忘掉|忘了|忘记|删掉|删除|别再记|不要记住?|别记)(?:关于|有关)?|^(?:关于|有关)|(?:的)?(?:事情|事儿|事|信息|情况|记忆|记录|内容|那些话|话)(?:吧|了)?$`)
	stateEN = lazyregexp.New(`(?i)^the user (?:is|are|was|has|had|does|likes|loves|lives|works|wants|plans|hates|owns|can|will|went|` +
		`[a-z]+s|[a-z]+ed)\b`)
	stateZH = lazyregexp.New(`^用户(?:喜欢|讨厌|不|住|在|有|是|叫|对|想|要|去|买|打算|计划|养|每|今年|会|爱|最|和|跟|把|用|吃|喝|正|曾)`)
)

// topic is a word for slots, by which they are forgotten.
var topicSlots = []struct {
	re     *lazyregexp.Regexp
	domain string
}{
	{lazyregexp.New(`(?i)^(?:the user's |用户的?|where the user )?(?:home|place of residence|lives?|住处|家在哪里?|住哪里?|住在哪里?|居住地)$`), "home"},
	{lazyregexp.New(`(?i)^(?:the user's |用户的?)?(?:home )?(?:address|地址|住址|家庭住址)$`), "address"},
	{lazyregexp.New(`(?i)^(?:the user's |用户的?)?(?:phone|phone number|mobile number|手机号码?|电话号?码?)$`), "phone"},
	{lazyregexp.New(`(?i)^(?:the user's |用户的?)?(?:email|email address|邮箱|电子邮箱)$`), "email"},
	{lazyregexp.New(`(?i)^(?:the user's |用户的?)?(?:job|work|employer|occupation|工作|职业|公司|单位)$`), "work"},
	{lazyregexp.New(`(?i)^(?:the user's |用户的?)?(?:name|名字|姓名)$`), "name"},
	{lazyregexp.New(`(?i)^(?:the user's |用户的?)?(?:age|年龄|年纪)$`), "age"},
	{lazyregexp.New(`(?i)^(?:the user's |用户的?)?(?:birthday|date of birth|生日)$`), "birthday"},
	{lazyregexp.New(`(?i)^(?:the user's |用户的?)?(?:weight|体重)$`), "weight"},
	{lazyregexp.New(`(?i)^(?:the user's |用户的?)?(?:relationship|relationship status|marriage|感情状况|婚姻状况)$`), "relationship"},
}

// about is what a request names, without the wording around it.
func about(text string) string {
	text = plain(text)
	for {
		shorter := strings.TrimSpace(asking.ReplaceAllString(text, ""))
		shorter = strings.TrimRight(shorter, "的吧了 ")
		if shorter == text || shorter == "" {
			return text
		}
		text = shorter
	}
}

// topics are the domains of slots that a request names.
func topics(text string) []string {
	text = about(text)
	var list []string
	for _, t := range topicSlots {
		if t.re.MatchString(text) {
			list = append(list, t.domain)
		}
	}
	return list
}

// fills reports whether a memory fills a slot of the domain, for the user and not for another person.
func fills(text, domain string) bool {
	return slices.ContainsFunc(read(text).slots(), func(slot string) bool {
		return slot == domain || strings.HasPrefix(slot, domain+"/") && !strings.Contains(slot, " of ") || strings.HasPrefix(slot, domain+" (")
	})
}

// withdraw says which memories a request to forget is about: those that hold all the words that tell what is meant. What
// is only similar stays.
func withdraw(s memory.Statement, near []decide.Neighbor) decide.Resolution {
	r := decide.Resolution{Action: decide.TreatWithdraw, Reason: "nothing that is known is about it"}
	text := about(s.Text)
	domains := topics(s.Text)
	stated := stateEN.MatchString(text) || stateZH.MatchString(text)
	mine := read(text)
	words := without(mine.words, generic)
	for _, n := range near {
		hit := mine.similar().Same(read(n.Memory.Text).similar())
		if !hit && stated {
			hit = says(mine, read(n.Memory.Text))
		}
		if !hit && !stated && len(words) > 0 {
			hit = mentions(text, words, n.Memory.Text)
		}
		if !hit && slices.ContainsFunc(domains, func(d string) bool { return fills(n.Memory.Text, d) }) {
			hit = true
		}
		if hit {
			r.Targets = append(r.Targets, n.Memory.ID)
		}
	}
	if len(r.Targets) > 0 {
		r.Reason = fmt.Sprintf("the user asked for it to be forgotten: %q", s.Text)
	}
	return r
}

// says reports whether a clause of a memory says what is stated, with the same denials and about the same person.
func says(stated, known *reading) bool {
	if len(stated.clauses) != 1 || len(stated.words) == 0 || whose(stated) != whose(known) {
		return false
	}
	for i, c := range known.clauses {
		if within(spoken(stated.clauses[0]), spoken(c)) && stated.stances[0].denies == known.stances[i].denies &&
			strings.Count(c, "不") == strings.Count(stated.clauses[0], "不") {
			return true
		}
	}
	return false
}

var ownWord = lazyregexp.New(`\p{Han}+`)

// mentions reports whether a memory holds all the words of a topic. Those of a script without spaces stand together.
func mentions(topic string, words []string, text string) bool {
	text = plain(text)
	if !within(words, spoken(text)) {
		return false
	}
	topic = userZH.ReplaceAllString(topic, "")
	for _, run := range ownWord.FindAllString(topic, -1) {
		for part := range strings.FieldsFuncSeq(run, func(r rune) bool { return strings.ContainsRune("的和跟与了", r) }) {
			if !strings.Contains(text, part) {
				return false
			}
		}
	}
	return true
}
