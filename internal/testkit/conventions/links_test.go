package conventions

import (
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
)

// page is a Markdown file.
type page struct {
	links    []string
	anchors  map[string]bool
	headings []int    // their levels
	blocks   []string // the fenced code
}

// TestLinks: Every relative link of the documentation leads to an existing file, and to a heading of it.
func TestLinks(t *testing.T) {
	pages := markdown(t)
	for path, p := range pages {
		for _, link := range p.links {
			to, err := url.Parse(link)
			if err != nil {
				t.Errorf("%s: %s: %v", path, link, err)
				continue
			}
			if to.Scheme != "" {
				continue // an external link
			}
			target := path
			if to.Path != "" {
				target = filepath.Join(filepath.Dir(path), filepath.FromSlash(to.Path))
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s links to %s, which is not there", path, link)
				continue
			}
			if other, ok := pages[target]; ok && to.Fragment != "" && !other.anchors[to.Fragment] {
				t.Errorf("%s links to %s, and there is no such heading", path, link)
			}
		}
	}
}

// TestPagesAreLinked: The index of the documentation leads to every page, directly or through the pages it links to.
func TestPagesAreLinked(t *testing.T) {
	pages := markdown(t)
	reached := map[string]bool{}
	var follow func(path string)
	follow = func(path string) {
		p, ok := pages[path]
		if !ok || reached[path] {
			return
		}
		reached[path] = true
		for _, link := range p.links {
			if to, err := url.Parse(link); err == nil && to.Scheme == "" && to.Path != "" {
				follow(filepath.Join(filepath.Dir(path), filepath.FromSlash(to.Path)))
			}
		}
	}
	follow(filepath.Join(root, "docs", "README.md"))
	for path := range pages {
		if strings.HasPrefix(path, filepath.Join(root, "docs")) && !reached[path] {
			t.Errorf("%s is not linked: link to it from docs/README.md", path)
		}
	}
}

// TestReadmesAgree: the Chinese README has the sections and the commands of the English one. Answers and comments are in the
// page's language.
func TestReadmesAgree(t *testing.T) {
	pages := markdown(t)
	english, chinese := pages[filepath.Join(root, "README.md")], pages[filepath.Join(root, "README.zh-CN.md")]
	if english == nil || chinese == nil {
		t.Fatal("a README is missing")
	}
	if len(english.headings) != len(chinese.headings) {
		t.Errorf("README.md has %d headings, README.zh-CN.md has %d: change both", len(english.headings), len(chinese.headings))
	}
	for i := range min(len(english.headings), len(chinese.headings)) {
		if english.headings[i] != chinese.headings[i] {
			t.Errorf("heading %d is of level %d, and %d in Chinese", i+1, english.headings[i], chinese.headings[i])
		}
	}
	if len(english.blocks) != len(chinese.blocks) {
		t.Fatalf("README.md has %d blocks of code, README.zh-CN.md has %d: change both", len(english.blocks), len(chinese.blocks))
	}
	for i, block := range english.blocks {
		if a, b := commandsOf(block), commandsOf(chinese.blocks[i]); a != b {
			t.Errorf("these commands of README.md and README.zh-CN.md differ:\n%s\n%s", a, b)
		}
	}
}

var comment = regexp.MustCompile(`\s+# .*`)

// commandsOf returns the lines that build or run this project's programs, without comments.
func commandsOf(block string) string {
	var commands []string
	for line := range strings.Lines(block) {
		line = strings.TrimSpace(comment.ReplaceAllString(line, ""))
		for _, begin := range []string{"memsidecar ", "./memsidecar ", "go ", "docker ", "$ memsidecar "} {
			if strings.HasPrefix(line, begin) {
				commands = append(commands, line)
			}
		}
	}
	return strings.Join(commands, "\n")
}

// markdown reads the Markdown files of this repository.
func markdown(t *testing.T) map[string]*page {
	t.Helper()
	pages := map[string]*page{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && path != root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "node_modules" || d.Name() == "testdata") {
			return fs.SkipDir
		}
		if d.IsDir() || filepath.Ext(path) != ".md" {
			return nil
		}
		source, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		pages[path] = readPage(source)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(pages) < 10 {
		t.Fatalf("only %d pages", len(pages))
	}
	return pages
}

func readPage(source []byte) *page {
	p := &page{anchors: map[string]bool{}}
	document := goldmark.New(goldmark.WithExtensions(extension.GFM), goldmark.WithParserOptions(parser.WithAutoHeadingID())).
		Parser().Parse(text.NewReader(source))
	_ = ast.Walk(document, func(n ast.Node, entering bool) (ast.WalkStatus, error) { // the walker returns no error
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Link:
			p.links = append(p.links, string(n.Destination))
		case *ast.Image:
			p.links = append(p.links, string(n.Destination))
		case *ast.Heading:
			p.headings = append(p.headings, n.Level)
			p.anchors[anchor(string(n.Lines().Value(source)))] = true
		case *ast.FencedCodeBlock:
			p.blocks = append(p.blocks, string(n.Lines().Value(source)))
		}
		return ast.WalkContinue, nil
	})
	return p
}

var notInAnchors = regexp.MustCompile(`[^\p{L}\p{N}\p{M} _-]`)

// anchor returns the anchor that GitHub generates for a heading.
func anchor(heading string) string {
	return strings.ReplaceAll(notInAnchors.ReplaceAllString(strings.ToLower(strings.TrimSpace(heading)), ""), " ", "-")
}
