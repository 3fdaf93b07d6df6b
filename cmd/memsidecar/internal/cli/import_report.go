package cli

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/memsidecar/memsidecar/cmd/memsidecar/internal/migrate"
)

// report counts the outcomes of the records of an import.
type report struct {
	format string
	dryRun bool
	parts  []*part
}

// part counts the outcomes of one kind of record in a file.
type part struct {
	file, what                   string
	added, there, aside, skipped int
	reasons                      []*reason
}

// reason is a reason for skipping, with its records.
type reason struct {
	Reason string `json:"reason"`
	Bad    bool   `json:"mistake"`
	Count  int    `json:"count"`
	Lines  []int  `json:"lines"` // the first ones
}

// Limits keep a report small, however many mistakes a file has.
const (
	maxReasons     = 50
	maxReasonLines = 10
)

func (r *report) part(file, what string) *part {
	p := &part{file: file, what: what}
	r.parts = append(r.parts, p)
	return p
}

// empty reports whether no record was counted.
func (r *report) empty() bool {
	return !slices.ContainsFunc(r.parts, func(p *part) bool { return p.added+p.there+p.aside+p.skipped > 0 })
}

func (r *report) bad() (n int) {
	for _, p := range r.parts {
		n += p.skipped
	}
	return n
}

// skip counts a skipped record.
func (p *part) skip(left migrate.Skipped) {
	if left.Bad {
		p.skipped++
	} else {
		p.aside++
	}
	i := slices.IndexFunc(p.reasons, func(r *reason) bool { return r.Reason == left.Reason && r.Bad == left.Bad })
	if i < 0 && len(p.reasons) >= maxReasons {
		left.Reason = "other reasons"
		i = slices.IndexFunc(p.reasons, func(r *reason) bool { return r.Reason == left.Reason && r.Bad == left.Bad })
	}
	if i < 0 {
		p.reasons, i = append(p.reasons, &reason{Reason: left.Reason, Bad: left.Bad, Lines: []int{}}), len(p.reasons)
	}
	r := p.reasons[i]
	r.Count++
	if left.Line > 0 && len(r.Lines) < maxReasonLines {
		r.Lines = append(r.Lines, left.Line)
	}
}

func (r *report) show(p *Program, o output) error {
	if o.JSON {
		return r.json(p)
	}
	s := o.screen(p)
	added := "added"
	if r.dryRun {
		added = "would add"
	}
	t := &table{columns: []column{{name: "file", wraps: true}, {name: "what"}}}
	for _, name := range []string{added, "there already", "left out", "skipped"} {
		t.columns = append(t.columns, column{name: name, right: true})
	}
	for _, part := range r.parts {
		bad := cell{text: fmt.Sprint(part.skipped)}
		if part.skipped > 0 {
			bad.style = red
		}
		t.row(part.file, part.what, cell{fmt.Sprint(part.added), green}, part.there, part.aside, bad)
	}
	s.print(t)
	for _, part := range r.parts {
		for _, why := range part.reasons {
			name := "left out"
			if why.Bad {
				name = "skipped"
			}
			s.say("%s: %s\n", name, line(part.file+": "+why.lineList()+why.Reason))
		}
	}
	return nil
}

// lineList lists the lines.
func (r *reason) lineList() string {
	if len(r.Lines) == 0 {
		return ""
	}
	numbers := make([]string, len(r.Lines))
	for i, n := range r.Lines {
		numbers[i] = fmt.Sprint(n)
	}
	name := "line "
	if r.Count > 1 {
		name = "lines "
	}
	list := name + strings.Join(numbers, ", ")
	if more := r.Count - len(r.Lines); more > 0 {
		list += fmt.Sprintf(" and %d more", more)
	}
	return list + ": "
}

// json says the same for scripts.
func (r *report) json(p *Program) error {
	type counts struct {
		Added   int `json:"added"`
		There   int `json:"there_already"`
		LeftOut int `json:"left_out"`
		Skipped int `json:"skipped"`
	}
	type partJSON struct {
		File string `json:"file"`
		What string `json:"what"`
		counts
		Reasons []*reason `json:"reasons"`
	}
	all := struct {
		Format string `json:"format"`
		DryRun bool   `json:"dry_run"`
		counts
		Parts []partJSON `json:"parts"`
	}{Format: r.format, DryRun: r.dryRun, Parts: []partJSON{}}
	for _, part := range r.parts {
		n := counts{part.added, part.there, part.aside, part.skipped}
		all.Added, all.There, all.LeftOut, all.Skipped = all.Added+n.Added, all.There+n.There, all.LeftOut+n.LeftOut, all.Skipped+n.Skipped
		reasons := part.reasons
		if reasons == nil {
			reasons = []*reason{}
		}
		all.Parts = append(all.Parts, partJSON{part.file, part.what, n, reasons})
	}
	data, err := json.Marshal(all)
	if err != nil {
		return err
	}
	_, err = p.Stdout.Write(harmless(append(data, '\n')))
	return err
}
