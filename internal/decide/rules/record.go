package rules

import (
	"slices"
	"strings"

	"github.com/memsidecar/memsidecar/internal/lang/lazyregexp"
	"github.com/memsidecar/memsidecar/internal/memory"
)

// What the speaker has the bot keep: entries of lists and values of plans that are added, changed and struck off, and the
// details of the speaker's own work that the bot asks for.

var (
	recordHeadEN = lazyregexp.New(`^(please |can you |could you |would you |will you |let's |let us |you can |so |also |now |just |` +
		`then |go ahead and )*(add|put|remove|delete|take|cross|strike|drop|update|change|set|move|replace|mark|include|reschedule|` +
		`postpone|log)\b`)
	// "I need to add 'milk' to …": an entry only when it is quoted, else a plan of the speaker's.
	recordOwnEN = lazyregexp.New(`^i (also |actually )?(need|want|would like) to (also )?(add|update|remove|delete|change)\b`)
	recordToEN  = lazyregexp.New(`\b(to|from|off|in|into|on|with|as|under|include|until)\b`)
	keptListEN  = lazyregexp.New(`\b(list|lists|calendar|schedule|agenda|diary|planner|tracker|log|inventory|wishlist|budget|reminders)\b`)
	// Work on a text that the bot wrote is no record.
	ownTextEN = lazyregexp.New(`\b(sentence|sentences|paragraph|paragraphs|word|words|line|lines|code|function|file|text|section|` +
		`slide|emoji|emojis|comment|comments|example|examples|story|poem|song|essay|translation|tone|image|picture|column|row|loop|` +
		`variable|test|tests|button|page|answer|response|reply|summary|recipe|version|it)\b`)

	recordAddZH  = lazyregexp.New(`(加到|加进|加入|添加到|写进|写到|放到|放进|记到|记在|列入|安排到).{0,12}(清单|列表|待办|日程|日历|名单|议程|备忘录|购物单|预算)`)
	recordDropZH = lazyregexp.New(`从.{0,12}(清单|列表|待办|日程|日历|名单|议程|备忘录|购物单)(里|中|上)?.{0,20}(删|去掉|划掉|移除|取消|拿掉)|^(请|麻烦|帮我|把|将)?.{1,` +
		`20}从.{0,12}(清单|列表|待办|日程|名单|议程)(里|中|上)?(删|去|划|移|取消)`)
	recordChangeZH = lazyregexp.New(`^(请|麻烦你?|帮我|那|就|再|也)*(把|将).{1,16}(从.{1,12})?(改成|改为|改到|更新为|更新成|调整为|调整到|换成|推迟到|提前到)`)
	ownTextZH      = lazyregexp.New(`段|句|字|词|代码|文章|语气|风格|标题|回答|颜色|函数|变量|图|诗|故事`)
)

// record finds in a sentence that the bot is to keep, change or strike off an entry, or returns nil.
func (r *Rules) record(s sentence, lang string) *unit {
	i, ok := r.byName[SignalRecord]
	if !ok {
		return nil
	}
	p := r.grammarOf(lang).stripLead(s.piece)
	if p.empty() || p.runes() > r.maxRunes {
		return nil
	}
	switch {
	case cancels(p, lang):
	case lang == chinese:
		definite := definite(p)
		if !recordAddZH.MatchString(p.norm) && !recordDropZH.MatchString(p.norm) &&
			(!recordChangeZH.MatchString(p.norm) || !definite || ownTextZH.MatchString(p.norm)) {
			return nil
		}
	default:
		end := matchEnd(recordHeadEN, p.norm)
		if end == 0 && strings.ContainsRune(p.norm, masked) {
			end = matchEnd(recordOwnEN, p.norm)
		}
		if end == 0 || !recordToEN.MatchString(p.norm[end:]) {
			return nil
		}
		list := keptListEN.MatchString(p.norm)
		if !list && (ownTextEN.MatchString(p.norm) || !definite(p) && detail(p.from(end), lang) == "") {
			return nil
		}
	}
	a := assessment{score: r.signals[i].Weight, findings: []finding{{signal: i}}, self: true}
	return &unit{assessment: a, pieces: []piece{p}, class: command, lang: lang, messages: []int{p.src.index}}
}

var politeRecordEN = lazyregexp.New(`(?i)^(please |can you |could you |would you |will you |you can |so |also |now |just |then |go ` +
	`ahead and |i (also |actually )?(need|want|would like) to )+`)

// tellRecord words a record: "The user asked the assistant to add …".
func (r *Rules) tellRecord(p piece, lang string) string {
	if lang == chinese {
		end := matchEnd(politeHeadZH, p.norm)
		if end == len(p.norm) {
			end = 0
		}
		p = p.from(end)
		text, ok := rewriteZH(p)
		if !ok {
			text = tidyZH(strings.TrimRight(p.raw, "吗？? "))
		}
		return "用户要求助手" + text
	}
	raw := tailEN.ReplaceAllString(strings.TrimRight(p.raw, "?.! "), "")
	if at := politeRecordEN.FindStringIndex(raw); at != nil {
		raw = raw[at[1]:]
	}
	src := newSource(p.src.index, raw)
	text, ok := rewriteEN(src.piece(0, len(src.raw)), true)
	if !ok {
		text = ending(raw, english)
	}
	return "The user asked the assistant to " + lowerFirst(text)
}

var (
	// The speaker has work to write down: "I need to draft a report", "help me organize my meeting notes".
	workEN = lazyregexp.New(`\b(i|we|me|us|my|our|can you|could you)\b.*\b(add|create|write|draft|prepare|preparing|update|organize|` +
		`organizing|structure|record|log|plan|planning|put together|help with|assistance with|work on|working on|fill|set up|document|` +
		`track|collect|submit|finish)\b.*\b(project|proposal|report|email|e-mail|post|meeting|notes|minutes|paper|presentation|budget|` +
		`plan|document|article|list|agenda|application|resume|cv|letter|event|trip|schedule|itinerary|profile|campaign|contract|invoice|` +
		`wedding|party|syllabus|lesson|newsletter|blog)\b`)
	workZH = lazyregexp.New(`(我|帮).*(写|做|准备|整理|记录|起草|填|策划|安排|更新|规划|制定|提交).*(方案|报告|邮件|会议|纪要|提案|计划|简历|论文|文章|行程|预算|项目|申请|清单|合同|婚礼|活动|日程|课件|稿)`)
	// The answer is about it: a definite subject, or what is to be used.
	aboutWorkEN = lazyregexp.New(`^(for |in |on |at )?(the|this|these|it is|it was|it will|its|we|our|there|let us use|they are|key|main|my) ?\b`)
	aboutWorkZH = lazyregexp.New(`^(标题|题目|主题|预算|时间|地点|日期|目标|参与|参加|出席|负责|截止|内容|收件|发给|关键|主要|议程|议题|项目|会议|这个|它|我们|一共|总共|共|就用|用)`)
	closingEN   = lazyregexp.New(`\b(thank|thanks|that is (all|it|everything)|nothing else|all set|covers everything|not yet|not sure|` +
		`no more|great|helpful|goodbye|bye)\b`)
	closingZH = lazyregexp.New(`谢谢|感谢|没有了|就这些|不用了|暂时|还没|不确定|不知道|再见`)
)

// workReach is how many messages back the speaker's work may have been announced.
const workReach = 24

// dictated keeps the answer to the assistant's question about a piece of work that the speaker announced in this dialogue.
func (r *Rules) dictated(d memory.Dialogue, i int, answer piece, lang string) *unit {
	signal, ok := r.byName[SignalRecord]
	if !ok || r.signals[signal].Weight < r.threshold || !strings.ContainsAny(d.Messages[i-1].Content, "?？") || answer.runes() < 6 ||
		answer.runes() > 2*r.maxRunes {
		return nil
	}
	sentences := answer.src.sentences()
	if len(sentences) == 0 || sentences[0].question {
		return nil
	}
	first := sentences[0].piece
	g := r.grammarOf(lang)
	body := g.stripLead(first)
	if g.classify(first, lang, false) != statement && !strings.HasPrefix(body.open(), "let us use ") || !aboutWork(body, lang) || !announcedWork(d, i) {
		return nil
	}
	a := assessment{score: r.signals[signal].Weight, self: true, findings: []finding{{signal: signal}}}
	u := &unit{assessment: a, pieces: []piece{answer}, lang: lang, messages: []int{i - 1, i}, kind: memory.KindTask}
	asked := newSource(i-1, d.Messages[i-1].Content).sentences()
	k := slices.IndexFunc(asked, func(s sentence) bool { return s.question })
	if k < 0 {
		return nil
	}
	q := asked[k].piece
	u.quote = r.cap(q.raw, lang) + "\n" + r.cap(answer.raw, lang)
	u.reason = "the user answered the assistant's question about their own work; " + r.reason(a)
	if lang == chinese {
		u.text = r.cap("助手问“"+q.raw+"”，用户回答“"+plain(answer, lang)+"”", lang)
	} else {
		u.text = r.cap(`Asked "`+q.raw+`", the user answered: "`+strings.TrimRight(answer.raw, ".! ")+`".`, lang)
	}
	return u
}

func aboutWork(p piece, lang string) bool {
	if lang == chinese {
		return !closingZH.MatchString(p.norm) && aboutWorkZH.MatchString(p.norm)
	}
	open := p.open()
	return len(p.words) > 3 && !closingEN.MatchString(open) && (aboutWorkEN.MatchString(open) || detail(p, lang) != "" && len(p.words) > 6)
}

// announcedWork reports whether the speaker of message i spoke of a piece of work to be written down shortly before.
func announcedWork(d memory.Dialogue, i int) bool {
	for k := i - 1; k >= max(0, i-workReach); k-- {
		m := d.Messages[k]
		if m.Role != memory.RoleUser || m.Speaker != d.Messages[i].Speaker {
			continue
		}
		head := newSource(k, m.Content[:runeStart(m.Content, min(len(m.Content), 600))])
		p := head.piece(0, len(head.raw))
		if workEN.MatchString(p.open()) || workZH.MatchString(p.norm) {
			return true
		}
	}
	return false
}
