package digest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/template"

	"github.com/memsidecar/memsidecar/internal/prompt"
)

// Templates has a template for each base language, such as "zh". "en" is used for languages without a template. Templates are in the
// syntax of text/template, receive a Page, and render a digest as Markdown.
type Templates map[string]string

// Page is the data of a template: each text is one line and cannot end a list or a comment.
type Page struct {
	Day         string // 2026-11-20
	Topics      []string
	Preferences []struct{ Key, Value string }
	Decisions   []string
	Tasks       []string
	Issues      []struct{ Question, Solution string }
	Insights    []string
	Empty       bool
}

// DefaultTemplates follows the daily note format of the product's first users.
func DefaultTemplates() Templates {
	return Templates{
		"zh": `# {{.Day}} 对话概要
{{if .Empty}}
（这一天没有可记的内容）
{{end}}{{with .Topics}}
## 主要话题
{{range .}}- {{.}}
{{end}}{{end}}{{with .Preferences}}
## 用户偏好
{{range .}}- **{{.Key}}**：{{.Value}}
{{end}}{{end}}{{with .Decisions}}
## 重要决定
{{range .}}- {{.}}
{{end}}{{end}}{{with .Tasks}}
## 待办事项
{{range .}}- {{.}}
{{end}}{{end}}{{with .Issues}}
## 问题与解决
{{range .}}- **问题**：{{.Question}}
{{with .Solution}}  **解决**：{{.}}
{{end}}{{end}}{{end}}{{with .Insights}}
## 关键洞察
{{range .}}- {{.}}
{{end}}{{end}}`,
		"en": `# Digest of {{.Day}}
{{if .Empty}}
(Nothing to report for this day.)
{{end}}{{with .Topics}}
## Topics
{{range .}}- {{.}}
{{end}}{{end}}{{with .Preferences}}
## Preferences
{{range .}}- **{{.Key}}**: {{.Value}}
{{end}}{{end}}{{with .Decisions}}
## Decisions
{{range .}}- {{.}}
{{end}}{{end}}{{with .Tasks}}
## Tasks
{{range .}}- {{.}}
{{end}}{{end}}{{with .Issues}}
## Problems and solutions
{{range .}}- **Problem**: {{.Question}}
{{with .Solution}}  **Solution**: {{.}}
{{end}}{{end}}{{end}}{{with .Insights}}
## Insights
{{range .}}- {{.}}
{{end}}{{end}}`,
	}
}

// Problem returns what is wrong with the templates, or "".
func (t Templates) Problem() string {
	if strings.TrimSpace(t["en"]) == "" {
		return "has no template for en, which is used for all languages without a template"
	}
	for _, language := range slices.Sorted(maps.Keys(t)) {
		full := Day{Date: "2026-11-20", Topics: []string{"x"}}
		for _, list := range []*[]Entry{&full.Preferences, &full.Decisions, &full.Tasks, &full.Issues, &full.Insights} {
			*list = []Entry{{Finding: Finding{Text: "x", Key: "x", Solution: "x"}}}
		}
		for _, d := range []Day{full, {Date: "2026-11-20"}} {
			if _, err := t.render(&d, language); err != nil {
				return fmt.Sprintf("for %s cannot be used: %v", language, err)
			}
		}
	}
	return ""
}

// Markdown renders the digest as Markdown.
func (k *Service) Markdown(d *Day) (string, error) { return k.options.Templates.render(d, d.Language) }

func (t Templates) render(d *Day, language string) (string, error) {
	base, _, _ := strings.Cut(strings.ToLower(language), "-")
	source, ok := t[base]
	if !ok {
		source = t["en"]
	}
	parsed, err := template.New("digest").Option("missingkey=error").Parse(source)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	if err := parsed.Execute(&b, d.page()); err != nil {
		return "", err
	}
	return b.String(), nil
}

func (d *Day) page() Page {
	p := Page{
		Day: d.Date, Empty: d.Empty(), Decisions: plainTexts(d.Decisions), Tasks: plainTexts(d.Tasks), Insights: plainTexts(d.Insights),
	}
	for _, topic := range d.Topics {
		p.Topics = append(p.Topics, prompt.Markdown(topic))
	}
	for _, e := range d.Preferences {
		p.Preferences = append(p.Preferences, struct{ Key, Value string }{prompt.Markdown(e.Key), prompt.Markdown(e.Text)})
	}
	for _, e := range d.Issues {
		p.Issues = append(p.Issues, struct{ Question, Solution string }{prompt.Markdown(e.Text), prompt.Markdown(e.Solution)})
	}
	return p
}

func plainTexts(list []Entry) []string {
	var texts []string
	for _, e := range list {
		texts = append(texts, prompt.Markdown(e.Text))
	}
	return texts
}
