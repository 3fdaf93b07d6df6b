// Package notebook is the long-lived view of a user's memories: grouped by kind, without duplicates, newest first. It also keeps the
// digests and the notebook as Markdown files that people read and write (files.go).
package notebook

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/memsidecar/memsidecar/internal/digest"
	"github.com/memsidecar/memsidecar/internal/lang/compare"
	"github.com/memsidecar/memsidecar/internal/lang/lexical"
	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/prompt"
	"github.com/memsidecar/memsidecar/internal/vectorstore"
)

// MaxEntries is the largest allowed number of entries.
const MaxEntries = 10_000

// pageSize is the number of memories read in one query.
const pageSize = 500

// comparedWith is the number of newest memories of the same kind with which each is compared. Repetitions are usually close together,
// and a notebook of thousands stays fast.
const comparedWith = 300

// Memories is the part of vectorstore.Store that a notebook needs.
type Memories interface {
	List(ctx context.Context, user memory.User, query vectorstore.ListQuery) (vectorstore.Page, error)
	Apply(ctx context.Context, user memory.User, entries []vectorstore.Entry) ([]vectorstore.Applied, error)
}

// Settings reads users' settings.
type Settings interface {
	Get(ctx context.Context, user memory.User) (memory.Settings, error)
}

// Notebook is the rendered view of a user's memories.
type Notebook struct {
	Language  string
	Sections  []Section
	Entries   int
	Truncated bool // there are more
	location  *time.Location
}

// Section has the memories of a kind, newest first.
type Section struct {
	Kind     memory.Kind
	Memories []memory.Memory
}

// Service makes notebooks.
type Service struct {
	Memories Memories
	Settings Settings
	Location *time.Location // for dates, for users who set no time zone
	// Files are the copies that people read and write. Optional.
	Files *Files
}

// Get returns the notebook with the newest memories that the viewer may see. An empty language means that of the user's settings, else
// that of the memories.
func (k *Service) Get(ctx context.Context, v digest.Viewer, most int, language string) (Notebook, error) {
	if k.Files != nil {
		if err := k.Files.TakeIn(ctx, v.User); err != nil && ctx.Err() == nil { // the memories are still readable
			k.Files.Log.Warn("what people wrote into their files was not imported; the next read or write of the notebook retries",
				"folder", k.Files.Dir, "error", err)
		}
	}
	return k.read(ctx, v, most, language)
}

func (k *Service) read(ctx context.Context, v digest.Viewer, most int, language string) (Notebook, error) {
	var n Notebook
	kept := map[memory.Kind][]memory.Memory{}
	known := map[memory.Kind][]compare.Text{}
	query := vectorstore.ListQuery{Filter: vectorstore.Filter{Audience: v.Audience, AgentID: v.AgentID}, Limit: pageSize}
	var text strings.Builder
	for more := true; more && !n.Truncated; more = query.After != "" {
		page, err := k.Memories.List(ctx, v.User, query)
		if err != nil {
			return n, err
		}
		for _, m := range page.Memories {
			prepared := compare.Prepare(m.Text)
			if slices.ContainsFunc(known[m.Kind], prepared.Same) {
				continue
			}
			if n.Entries == most {
				n.Truncated = true
				break
			}
			n.Entries++
			kept[m.Kind] = append(kept[m.Kind], m)
			if len(known[m.Kind]) < comparedWith {
				known[m.Kind] = append(known[m.Kind], prepared)
			}
			text.WriteString(m.Text + "\n")
		}
		query.After = page.Next
	}
	for _, kind := range memory.Kinds() {
		if len(kept[kind]) > 0 {
			n.Sections = append(n.Sections, Section{kind, kept[kind]})
		}
	}
	user, err := k.Settings.Get(ctx, v.User)
	if err != nil {
		return n, err
	}
	n.location = user.Location(k.Location)
	switch {
	case language != "":
		n.Language = language
	case user.Language != "":
		n.Language = user.Language
	default:
		n.Language = lexical.Language(text.String())
	}
	return n, nil
}

// headings are the fixed texts of a notebook.
type headings struct {
	title, empty string
	more         string
	kinds        map[memory.Kind]string
}

var english = headings{
	title: "Notebook", empty: "(Nothing is remembered yet.)", more: "(Older memories are not shown.)",
	kinds: map[memory.Kind]string{
		memory.KindFact: "About the user", memory.KindPreference: "Preferences", memory.KindRelationship: "People", memory.KindPlan: "Plans",
		memory.KindAppointment: "Appointments", memory.KindDecision: "Decisions", memory.KindExperience: "Experiences",
		memory.KindTask: "Tasks", memory.KindProblem: "Problems and solutions", memory.KindRequest: "Wishes",
	},
}

var chinese = headings{
	title: "长期记忆", empty: "（还没有任何记忆）", more: "（更早的记忆未显示）",
	kinds: map[memory.Kind]string{
		memory.KindFact: "基本信息", memory.KindPreference: "偏好", memory.KindRelationship: "人际关系", memory.KindPlan: "计划",
		memory.KindAppointment: "约定", memory.KindDecision: "重要决定", memory.KindExperience: "经历",
		memory.KindTask: "待办事项", memory.KindProblem: "问题与解决", memory.KindRequest: "要求",
	},
}

// Markdown renders the notebook as Markdown.
func (n *Notebook) Markdown() string {
	words := &english
	if base, _, _ := strings.Cut(strings.ToLower(n.Language), "-"); base == "zh" {
		words = &chinese
	}
	var b strings.Builder
	b.WriteString("# " + words.title + "\n")
	if n.Entries == 0 {
		b.WriteString("\n" + words.empty + "\n")
	}
	for _, s := range n.Sections {
		b.WriteString("\n## " + words.kinds[s.Kind] + "\n")
		for _, m := range s.Memories {
			b.WriteString("- " + prompt.Markdown(m.Text) + " (" + m.ObservedAt.In(n.location).Format(time.DateOnly) + ")\n")
		}
	}
	if n.Truncated {
		b.WriteString("\n" + words.more + "\n")
	}
	return b.String()
}
