package cli

// Shared with the commands of other packages.

// Table prints rows under their headings: the first columns are text, the others numbers.
func (p *Program) Table(columns []string, words int, rows [][]string) {
	t := &table{}
	for i, name := range columns {
		t.columns = append(t.columns, column{name: name, right: i >= words})
	}
	for _, row := range rows {
		cells := make([]any, len(row))
		for i, text := range row {
			cells[i] = text
		}
		t.row(cells...)
	}
	output{}.screen(p).print(t)
}

// Note prints a remark on standard error.
func (p *Program) Note(format string, args ...any) { p.note(format, args...) }
