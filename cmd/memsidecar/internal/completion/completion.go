// Package completion completes command lines in shells. The shells' small scripts call the program itself, which walks the same model of
// commands and flags as the parser, so nothing has to be generated.
package completion

import (
	_ "embed"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// Command prints a shell's script.
type Command struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish."`
}

// Help says how to set it up.
func (Command) Help() string {
	return `Put one of these into your shell's start-up file:

    source <(memsidecar completion bash)        # ~/.bashrc
    source <(memsidecar completion zsh)         # ~/.zshrc, after compinit
    memsidecar completion fish | source         # ~/.config/fish/config.fish`
}

var (
	//go:embed memsidecar.bash
	bash string
	//go:embed memsidecar.zsh
	zsh string
	//go:embed memsidecar.fish
	fish string
)

// Run prints the script.
func (c Command) Run(k *kong.Kong) error {
	_, err := io.WriteString(k.Stdout, map[string]string{"bash": bash, "zsh": zsh, "fish": fish}[c.Shell])
	return err
}

// Words is the command that the scripts call: it completes the last of the words.
type Words struct {
	Words []string `arg:"" optional:"" passthrough:""`
}

// Run prints one candidate per line, with a tab and its description; or only ":files" to complete file names.
func (c Words) Run(k *kong.Kong) error {
	words := c.Words
	if len(words) > 0 && words[0] == "--" {
		words = words[1:]
	}
	for _, candidate := range complete(k.Model.Node, words) {
		if _, err := fmt.Fprintln(k.Stdout, candidate); err != nil {
			return err
		}
	}
	return nil
}

// files asks the shell for the names of files.
const files = ":files"

func complete(root *kong.Node, words []string) []string {
	if len(words) == 0 {
		words = []string{""}
	}
	at := position{node: root}
	before, last := words[:len(words)-1], words[len(words)-1]
	for _, word := range before {
		at.pass(word)
	}
	return at.candidates(last)
}

// position is the place of the word to complete in the command line.
type position struct {
	node       *kong.Node
	arguments  int        // number of arguments given
	value      *kong.Flag // flag whose value is next
	onlyValues bool       // after "--"
}

// pass moves past a word.
func (p *position) pass(word string) {
	if p.value != nil {
		if word != "=" { // bash splits at "="
			p.value = nil
		}
		return
	}
	if word == "--" {
		p.onlyValues = true
		return
	}
	if strings.HasPrefix(word, "-") && word != "-" && !p.onlyValues {
		name, _, hasValue := strings.Cut(word, "=")
		if flag := p.flag(name); flag != nil && !flag.IsBool() && !hasValue {
			p.value = flag
		}
		return
	}
	for _, child := range p.node.Children {
		if child.Name == word || slices.Contains(child.Aliases, word) {
			p.node, p.arguments = child, 0
			return
		}
	}
	p.arguments++
}

func (p *position) candidates(word string) []string {
	if p.value != nil {
		return values(p.value.Value, "", strings.TrimPrefix(word, "="))
	}
	if strings.HasPrefix(word, "-") && !p.onlyValues {
		name, value, hasValue := strings.Cut(word, "=")
		if !hasValue {
			return p.flags(word)
		}
		if flag := p.flag(name); flag != nil {
			return values(flag.Value, name+"=", value)
		}
		return nil
	}
	var list []string
	for _, child := range p.node.Children {
		if !child.Hidden && strings.HasPrefix(child.Name, word) {
			list = append(list, candidate(child.Name, child.Help))
		}
	}
	if arguments := p.node.Positional; len(list) == 0 && len(arguments) > 0 {
		if at := arguments[min(p.arguments, len(arguments)-1)]; p.arguments < len(arguments) || at.IsSlice() {
			return values(at, "", word)
		}
	}
	return list
}

// all are the flags of the command and of those it is part of.
func (p *position) all() []*kong.Flag {
	var all []*kong.Flag
	for node := p.node; node != nil; node = node.Parent {
		for _, flag := range node.Flags {
			if !flag.Hidden {
				all = append(all, flag)
			}
		}
	}
	return all
}

func (p *position) flag(name string) *kong.Flag {
	for _, flag := range p.all() {
		if name == "--"+flag.Name || name == "--no-"+flag.Name && flag.Tag.Negatable != "" || flag.Short != 0 && name == "-"+string(flag.Short) {
			return flag
		}
	}
	return nil
}

func (p *position) flags(word string) []string {
	var list []string
	for _, flag := range p.all() {
		forms := []string{"--" + flag.Name}
		if flag.Tag.Negatable != "" {
			forms = append(forms, "--no-"+flag.Name)
		}
		for _, form := range forms {
			if strings.HasPrefix(form, word) {
				list = append(list, candidate(form, flag.Help))
			}
		}
	}
	return list
}

// values completes a value; in a list, the last one.
func values(value *kong.Value, before, word string) []string {
	if value.Tag.Get("complete") == "file" {
		return []string{files}
	}
	if i := strings.LastIndex(word, ","); i >= 0 && value.IsSlice() {
		before, word = before+word[:i+1], word[i+1:]
	}
	var list []string
	for _, allowed := range value.EnumSlice() {
		if allowed != "" && strings.HasPrefix(allowed, word) {
			list = append(list, before+allowed)
		}
	}
	return list
}

func candidate(name, help string) string { return name + "\t" + strings.ReplaceAll(help, "\n", " ") }
