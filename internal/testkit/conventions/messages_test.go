package conventions

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestDocumentedMessagesExist: Messages quoted in docs/troubleshooting.md exist in the code. Messages of other programs have a separate
// section, which is not checked.
func TestDocumentedMessagesExist(t *testing.T) {
	text, err := os.ReadFile(root + "/docs/troubleshooting.md")
	if err != nil {
		t.Fatal(err)
	}
	ours, _, found := strings.Cut(string(text), "\n## Said by others\n")
	if !found {
		t.Fatal("the section for other programs' messages is missing")
	}
	said := strings.Join(literals(t), "\n")
	looked := 0
	for line := range strings.Lines(ours) {
		first, _, _ := strings.Cut(strings.TrimPrefix(line, "| "), " | ")
		if !strings.HasPrefix(first, "`") {
			continue
		}
		for _, quoted := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(first, -1) {
			for part := range strings.SplitSeq(quoted[1], "…") {
				part = strings.Trim(part, " :;")
				if part == "" {
					continue
				}
				looked++
				if !strings.Contains(said, part) {
					t.Errorf("docs/troubleshooting.md quotes %q, which no message in the code has: correct the quotation, or write … for its variable parts", part)
				}
			}
		}
	}
	if looked < 120 {
		t.Errorf("only %d messages were looked up", looked)
	}
}

// literals returns the string literals in the program's code. Concatenated ones are joined.
func literals(t *testing.T) (texts []string) {
	t.Helper()
	for _, path := range goFiles(t) {
		if strings.HasSuffix(path, "_test.go") || strings.HasSuffix(path, ".pb.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			e, ok := n.(ast.Expr)
			if !ok {
				return true
			}
			text, ok := constant(e)
			if ok {
				texts = append(texts, text)
			}
			return !ok
		})
	}
	return texts
}

// constant returns the value of a literal, or of a concatenation of literals.
func constant(e ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(e.Value)
		return text, err == nil && e.Kind == token.STRING
	case *ast.BinaryExpr:
		left, ok1 := constant(e.X)
		right, ok2 := constant(e.Y)
		return left + right, e.Op == token.ADD && ok1 && ok2
	}
	return "", false
}
