// Package train teaches the classifier of sentences, and measures it, with labelled messages.
package train

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/dlclark/regexp2"

	"github.com/memsidecar/memsidecar/internal/decide/classify"
	"github.com/memsidecar/memsidecar/internal/lang/sentences"
)

// ReadFiles reads files of labelled messages, and files in the talk format.
func ReadFiles(paths []string) (examples []classify.Example, err error) {
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		read := Read
		if first, _, _ := strings.Cut(string(data), "\n"); strings.Contains(first, `"steps"`) {
			read = ReadTalk
		}
		more, err := read(path)
		if err != nil {
			return nil, err
		}
		examples = append(examples, more...)
	}
	return examples, nil
}

// message is a line of a file of labelled messages.
type message struct {
	Language string     `json:"lang"`
	Context  []string   `json:"ctx"`   // turns before, oldest first: "u: …" of the user, "b: …" of the bot
	Parts    [][]string `json:"parts"` // text, label, and if there are any slot and flags
	Reply    string     `json:"reply"` // what the bot answered; optional
}

// Read reads labelled messages.
func Read(path string) ([]classify.Example, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	var examples []classify.Example
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for n := 1; lines.Scan(); n++ {
		var m message
		if strings.TrimSpace(lines.Text()) == "" {
			continue
		}
		if err := json.Unmarshal(lines.Bytes(), &m); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", path, n, err)
		}
		examples = append(examples, m.examples()...)
	}
	return examples, lines.Err()
}

// part is a labelled part of a message.
type part struct {
	start, end  int
	label, slot string
	flags       []string
}

// examples are the sentences of a message, as the product divides it.
func (m message) examples() []classify.Example {
	var text strings.Builder
	var parts []part
	for _, p := range m.Parts {
		for len(p) < 4 {
			p = append(p, "")
		}
		if text.Len() > 0 {
			last, _ := utf8.DecodeLastRuneInString(text.String())
			first, _ := utf8.DecodeRuneInString(p[0])
			if !unicode.IsSpace(last) && !unicode.IsSpace(first) && (last < 0x2E80 || first < 0x2E80) {
				text.WriteByte(' ')
			}
		}
		parts = append(parts, part{text.Len(), text.Len() + len(p[0]), p[1], p[2], strings.Fields(p[3])})
		text.WriteString(p[0])
	}
	said := text.String()
	var bot, user string
	for _, turn := range m.Context {
		if rest, ok := strings.CutPrefix(turn, "b: "); ok {
			bot = rest
		} else {
			user = strings.TrimPrefix(turn, "u: ")
		}
	}
	var examples []classify.Example
	list := sentences.Of(said)
	for i, s := range list {
		e := classify.Example{Weight: 1, Language: m.Language, Unit: classify.Unit{
			Message: said, Start: s.Start, End: s.End, Index: i, Count: len(list), Bot: bot, User: user, Reply: m.Reply,
		}}
		best := -1
		for _, p := range parts {
			overlap := min(p.end, s.End) - max(p.start, s.Start)
			if overlap <= 0 {
				continue
			}
			if rank := 1000*rank(p.label) + min(overlap, 999); rank > best {
				best = rank
				e.Label, e.Slot = classify.Label(p.label), p.slot
				e.Flags = p.flags
			}
		}
		if best >= 0 {
			examples = append(examples, e)
		}
	}
	return examples
}

// rank says which label a sentence has that holds several parts.
func rank(label string) int {
	switch i := slices.Index(classify.Labels(), classify.Label(label)); {
	case i < len(classify.Kept()):
		return 2
	case i > slices.Index(classify.Labels(), classify.Remember):
		return 3
	default:
		return 1
	}
}

// talk is a line of a file in the talk format.
type talk struct {
	Steps []talkStep `json:"steps"`
	User  string     `json:"user"`
}

type talkStep struct {
	At   time.Time `json:"at"`
	Call []struct {
		Role    string `json:"role"`
		Content string `json:"content"`
		Speaker string `json:"speaker"`
	} `json:"call"`
	Keep    []string `json:"keep"`
	Drop    []string `json:"drop"`
	Nothing bool     `json:"nothing"`
}

// ReadTalk reads conversations in the talk format. Of a sentence they tell only whether it is to be kept: it is if an expression to keep
// matches it, and it is not if the whole call has nothing to keep. Other sentences are left out.
func ReadTalk(path string) ([]classify.Example, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var examples []classify.Example
	for line := range strings.Lines(string(data)) {
		var t talk
		if err := json.Unmarshal([]byte(line), &t); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		var bot, user string
		var last time.Time
		for _, step := range t.Steps {
			if step.At.Sub(last) > 24*time.Hour {
				bot, user = "", ""
			}
			last = step.At
			for i, m := range step.Call {
				switch {
				case m.Role != "user":
					bot = m.Content
				case m.Speaker == "" || m.Speaker == t.User:
					examples = append(examples, step.examples(i, bot, user)...)
					user = m.Content
				}
			}
		}
	}
	return examples, nil
}

// weightOfTalk is the weight of an example of a conversation: expressions tell less than labels.
const weightOfTalk = .7

// examples are the sentences of a message.
func (s *talkStep) examples(message int, bot, user string) (list []classify.Example) {
	reply := ""
	if message+1 < len(s.Call) && s.Call[message+1].Role != "user" {
		reply = s.Call[message+1].Content
	}
	for _, u := range classify.Units(s.Call[message].Content, bot, user, reply, 100) {
		e := classify.Example{Unit: u, Weight: weightOfTalk}
		switch {
		case s.Nothing, matches(s.Drop, u.Text()):
			e.Any = classify.Labels()[len(classify.Kept()):]
		case matches(s.Keep, u.Text()):
			e.Any = classify.Kept()
		default:
			continue
		}
		list = append(list, e)
	}
	return list
}

func matches(expressions []string, text string) bool {
	for _, x := range expressions {
		re, err := regexp2.Compile(x, regexp2.None)
		if err != nil {
			continue
		}
		if ok, _ := re.MatchString(text); ok {
			return true
		}
	}
	return false
}
