// Package rules extracts digests without a model: statements about the user (by the rules of internal/decide/rules), problems with
// their answers, and insights. Findings keep the words of the conversation.
package rules

import (
	"context"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/memsidecar/memsidecar/internal/decide"
	"github.com/memsidecar/memsidecar/internal/digest"
	"github.com/memsidecar/memsidecar/internal/lang/lazyregexp"
	"github.com/memsidecar/memsidecar/internal/memory"
)

// Limits for one piece.
const (
	maxIssues     = 8
	maxInsights   = 8
	minRunes      = 6   // of a sentence with content
	maxSolution   = 200 // characters
	maxSentences  = 2   // of a solution
	leastProblems = 8   // letters of a problem
)

// Extractor implements digest.Extractor.
type Extractor struct {
	by Reader
}

// Reader reads what a user said.
type Reader interface {
	// Statements returns what is worth keeping.
	Statements(t decide.Transcript) []memory.Statement
	// Due reports whether a sentence says what its speaker has to do.
	Due(sentence string) bool
}

var _ digest.Extractor = (*Extractor)(nil)

// New returns an Extractor.
func New(by Reader) *Extractor { return &Extractor{by} }

// Name implements digest.Extractor.
func (*Extractor) Name() string { return "rules" }

// Extract implements digest.Extractor. Its only error is the context's.
func (x *Extractor) Extract(ctx context.Context, p digest.Piece) ([]digest.Finding, error) {
	found := x.said(p)
	found = append(found, x.tasks(p, found)...)
	found = append(found, issues(p)...)
	return append(found, insights(p)...), ctx.Err()
}

// said returns what users said about themselves in messages that are not considered.
func (x *Extractor) said(p digest.Piece) []digest.Finding {
	t := decide.Transcript{Speaker: p.Scope.UserID, Location: p.Location, Dialogue: memory.Dialogue{Scope: p.Scope}}
	for i := range p.Messages {
		m := p.Messages[i].Message
		m.ID = p.Messages[i].Name()
		if p.Messages[i].Considered && m.Role == memory.RoleUser {
			m.Content = ""
		}
		t.Dialogue.Messages = append(t.Dialogue.Messages, m)
	}
	var found []digest.Finding
	for _, said := range x.by.Statements(t) {
		found = append(found, digest.FromStatement(said))
	}
	return found
}

var (
	problem = lazyregexp.New(`(?i)报错|出错|错误|异常|崩溃|卡死|死机|闪退|打不开|连不上|登不上|启动不了|无法|不能用|用不了|失败|没反应|超时|泄漏|冲突|故障|(^|[^a-z])bug|不工作|` +
		`\b(errors?|exceptions?|crash(es|ed|ing)?|fails?|failed|failing|broken|timeouts?|timed out|stuck|doesn't work|does not work|not ` +
		`working|won't (start|open|load|connect|work)|can't (start|open|load|connect|log in)|stack trace|segfault|leak)\b`)
	howTo = lazyregexp.New(`(?i)怎么(办|解决|修|处理|弄|配置|设置|安装|才能|做|改善|调整)|如何(解决|修|处理|配置|设置|安装|才能|做|改善|提高|应对|面对|克服)|怎样(才能|解决|处理|做)|该怎么|` +
		`有什么(办法|方法|建议|好办法)|` +
		`\bhow (do|can|should|would|to)\b|\bwhat (should|can) i (do|use|try)\b|\bany (ideas?|advice|suggestions?|tips?)\b`)
	advice = lazyregexp.New(`(?i)可以|试试|尝试|建议|需要|应该|检查|安装|设置|设为|改成|改为|升级|降级|重启|更新|使用|运行|执行|添加|删除|因为|原因|是由于|多(喝|吃|运动|休息|练习)|避免|` +
		`\b(try|use|set|install|check|you can|you could|you should|need to|run|upgrade|downgrade|restart|update|add|remove|because|the ` +
		`reason|make sure|avoid|recommend|suggest)\b`)
	settled = lazyregexp.New(`(?i)(解决了|搞定了|修好了|可以了|能用了|原来是|是因为|成功了)|\b(fixed it|solved|works now|it works|that worked|turned out|it ` +
		`was (the|a|my|because))\b`)
	insight = lazyregexp.New(`(?i)我?(才|终于|突然|现在)?(发现|意识到|明白了|懂了|学到了?|学会了|领悟|体会到|认识到|总结(出|下来)|觉得最重要|让我明白|让我意识到)|(重要|关键)的是|原来(是|，|如此|要)|` +
		`\b(i (just |now |finally |have |'ve )*(realized|realised|learned|learnt|found out|figured out|noticed|understood|understand now)|` +
		`turns out|the key is|the most important|lesson)\b`)
	// Greetings, thanks and questions are not insights.
	noInsight = lazyregexp.New(`(?i)^(谢谢|感谢|你好|好的|嗯|哈哈|thanks|thank you|ok|okay|hi|hello)|[?？]$|(吗|呢)[。.！!]?$|没(有)?(发现|意识到|学会)|不(明白|懂)`)
)

// lead matches the words at the start of a sentence that belong to the talk and not to its subject.
var lead = lazyregexp.New(`^(?:(?:嗯+|啊|哦|唉|哎|那么?|不过|但是|可是|另外|还有|然后|所以|对了|比如|其实|首先|请问|你好|你觉得|你知道|我想问一?下?|(?i:well|so|but|and|also|hey|` +
	`hi|ok|okay|actually|by the way|please))[，,、：:！!。 ]+|你觉得|请问)+`)

func stripped(text string) string {
	if rest := lead.ReplaceAllString(text, ""); utf8.RuneCountInString(rest) >= minRunes {
		return rest
	}
	return text
}

// insights returns what the user says they understood.
func insights(p digest.Piece) []digest.Finding {
	var found []digest.Finding
	for i := range p.Messages {
		m := &p.Messages[i]
		if m.Role != memory.RoleUser {
			continue
		}
		for _, s := range sentences(m.Content) {
			s = stripped(s)
			if len(found) == maxInsights {
				return found
			}
			n := utf8.RuneCountInString(s)
			if n < minRunes || n > 150 || !insight.MatchString(s) || noInsight.MatchString(s) || problem.MatchString(s) && howTo.MatchString(s) {
				continue
			}
			found = append(found, digest.Finding{
				Category: digest.Insight, Text: s, Statement: said(p.Language, s), Quote: s, MessageIDs: []string{m.Name()}, SaidAt: m.Time,
			})
		}
	}
	return found
}

// said words a person's quote as a finding.
func said(language, text string) string {
	if language == "zh" {
		return "用户说：“" + text + "”"
	}
	return `The user said: "` + text + `"`
}

// sentences splits a text at the ends of sentences and lines. A dot inside a number, a file name or an address does not end a sentence.
func sentences(text string) []string {
	var list []string
	start := 0
	runes := []rune(text)
	cut := func(end int) {
		s := strings.TrimSpace(strings.TrimLeft(strings.TrimSpace(string(runes[start:end])), "-*•·#>0123456789.、) "))
		if s != "" {
			list = append(list, s)
		}
		start = end
	}
	for i, r := range runes {
		switch {
		case r == '\n':
			cut(i + 1)
		case strings.ContainsRune("。！？；!?;", r), r == '.' && (i+1 == len(runes) || runes[i+1] == ' '):
			if i+1 < len(runes) && slices.Contains([]rune("。！？!?”\"」』)"), runes[i+1]) {
				continue
			}
			cut(i + 1)
		}
	}
	cut(len(runes))
	return list
}
