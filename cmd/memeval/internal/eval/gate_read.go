package eval

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// personaFile is a file of Memora's format: the sessions of one persona, in order.
type personaFile struct {
	Path     string
	Name     string // the file's name without extension: the user's id
	Sessions []personaSession
	Asked    *expected // expected facts of its questions; nil without a questions file
}

// personaSession is one session, a line of the file.
type personaSession struct {
	ID           int           `json:"session_id"`
	Type         string        `json:"session_type"`
	Date         string        `json:"date"`
	Conversation []personaTurn `json:"conversation"`

	time time.Time // time of the session, in the order of the file
}

type personaTurn struct {
	Turn    int    `json:"turn"`
	Speaker string `json:"speaker"`
	Message string `json:"message"`
	Share   bool   `json:"share_memory"` // worth remembering
}

// noMemory is the type of sessions without anything worth remembering.
const noMemory = "no_memory"

func (t personaTurn) byUser() bool { return t.Speaker == "user_agent" }

// judgedTurn is a line of a file of the zh_gate format: a user's turn with its label.
type judgedTurn struct {
	User  string `json:"user"`
	Date  string `json:"date"`
	Turn  int    `json:"turn"`
	Text  string `json:"text"`
	Label *int   `json:"label"` // 1: worth remembering
	Kind  string `json:"kind"`
	Hard  bool   `json:"hard"` // annotators may differ

	file string
	time time.Time
}

// gateFiles are the files of a run, all of one format.
type gateFiles struct {
	personas []personaFile
	judged   []judgedTurn
}

const gateFormats = `a line is a Memora session (session_id, conversation, …) or a labelled turn (user, date, turn, text, label, …)`

// readGate reads files of either format, detected from their content.
func readGate(paths []string) (gateFiles, error) {
	var files gateFiles
	names := map[string]bool{}
	for _, path := range paths {
		lines, err := readLines(path)
		if err != nil {
			return files, err
		}
		var first struct {
			Conversation json.RawMessage `json:"conversation"`
			Label        json.RawMessage `json:"label"`
		}
		if err := json.Unmarshal(lines[0].data, &first); err != nil {
			return files, jsonError(path, lines[0].number, lines[0].data, err, gateFormats)
		}
		switch {
		case first.Conversation != nil:
			p, err := readPersona(path, lines)
			if err != nil {
				return files, err
			}
			for name, n := p.Name, 2; names[p.Name]; n++ {
				p.Name = fmt.Sprintf("%s-%d", name, n)
			}
			names[p.Name] = true
			files.personas = append(files.personas, p)
		case first.Label != nil:
			turns, err := readJudged(path, lines)
			if err != nil {
				return files, err
			}
			files.judged = append(files.judged, turns...)
		default:
			return files, &InputError{path, lines[0].number, "is in neither format: " + gateFormats}
		}
	}
	if len(files.personas) > 0 && len(files.judged) > 0 {
		return files, &InputError{
			File:    paths[len(paths)-1],
			Problem: "is of another format than the files before: measure sessions and labelled turns in runs of their own",
		}
	}
	return files, nil
}

type numberedLine struct {
	number int
	data   []byte
}

// maxLine limits a line of a file.
const maxLine = 16 << 20

// readLines reads the lines that are not blank, at least one.
func readLines(path string) (lines []numberedLine, err error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, &InputError{File: path, Problem: err.Error()}
	}
	defer func() { _ = file.Close() }() // opened for reading only
	scanner := bufio.NewScanner(file)
	scanner.Buffer(nil, maxLine)
	n := 0
	for scanner.Scan() {
		n++
		if line := bytes.TrimSpace(scanner.Bytes()); len(line) > 0 {
			lines = append(lines, numberedLine{n, bytes.Clone(line)})
		}
	}
	if err := scanner.Err(); err != nil {
		return nil, &InputError{path, n + 1, err.Error()}
	}
	if len(lines) == 0 {
		return nil, &InputError{File: path, Problem: "is empty: " + gateFormats}
	}
	return lines, nil
}

// readPersona reads the sessions and the questions of one persona.
func readPersona(path string, lines []numberedLine) (personaFile, error) {
	p := personaFile{Path: path, Name: strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))}
	days := map[string]int{} // sessions per day
	ids := map[int]bool{}
	for _, line := range lines {
		var s personaSession
		if err := json.Unmarshal(line.data, &s); err != nil {
			return p, jsonError(path, line.number, line.data, err, gateFormats)
		}
		if err := s.check(ids); err != nil {
			return p, &InputError{path, line.number, err.Error()}
		}
		ids[s.ID] = true
		days[s.Date]++
		p.Sessions = append(p.Sessions, s)
	}
	// Sessions have no time of day: those of a day are distributed over it in order, so that each message has its own time.
	begun := map[string]int{}
	for i := range p.Sessions {
		s := &p.Sessions[i]
		s.time, _ = time.Parse(time.DateOnly, s.Date) // checked before
		begun[s.Date]++
		s.time = s.time.Add((24 * time.Hour * time.Duration(begun[s.Date]) / time.Duration(days[s.Date]+1)).Truncate(time.Second))
	}
	var err error
	p.Asked, err = readExpected(strings.TrimSuffix(path, filepath.Ext(path)) + ".questions.json")
	return p, err
}

func (s *personaSession) check(ids map[int]bool) error {
	if _, err := time.Parse(time.DateOnly, s.Date); err != nil {
		return fmt.Errorf("the date %q: write it as 2025-06-01", s.Date)
	}
	if len(s.Conversation) == 0 {
		return errors.New("conversation is empty: write what was said")
	}
	if ids[s.ID] {
		return fmt.Errorf("session_id %d occurs twice", s.ID)
	}
	turns := map[int]bool{}
	for _, t := range s.Conversation {
		if t.Speaker != "user_agent" && t.Speaker != "ai_agent" {
			return fmt.Errorf("turn %d: the speaker %q: write user_agent or ai_agent", t.Turn, t.Speaker)
		}
		if turns[t.Turn] {
			return fmt.Errorf("turn %d occurs twice", t.Turn)
		}
		turns[t.Turn] = true
	}
	return nil
}

func readJudged(path string, lines []numberedLine) (turns []judgedTurn, err error) {
	type place struct {
		user, date string
		turn       int
	}
	seen := map[place]bool{}
	for _, line := range lines {
		t := judgedTurn{file: filepath.Base(path)}
		if err := json.Unmarshal(line.data, &t); err != nil {
			return nil, jsonError(path, line.number, line.data, err, gateFormats)
		}
		here := place{t.User, t.Date, t.Turn}
		day, dateErr := time.Parse(time.DateOnly, t.Date)
		switch {
		case t.User == "" || t.Text == "":
			err = errors.New("user and text are required")
		case t.Label == nil || *t.Label != 0 && *t.Label != 1:
			err = errors.New("label must be 0 or 1")
		case dateErr != nil:
			err = fmt.Errorf("the date %q: write it as 2025-06-01", t.Date)
		case seen[here]:
			err = fmt.Errorf("turn %d of %s on %s occurs twice", t.Turn, t.User, t.Date)
		}
		if err != nil {
			return nil, &InputError{path, line.number, err.Error()}
		}
		seen[here] = true
		t.time = day.Add(12*time.Hour + time.Duration(t.Turn)*time.Minute)
		turns = append(turns, t)
	}
	return turns, nil
}

// expected are the facts that must be remembered or forgotten at the end.
type expected struct {
	Kept, Forgotten []fact
}

// fact is the text of an expected memory.
type fact struct {
	Text     string
	Session  int // in which the user stated or retracted it
	Question string
}

// readExpected reads the questions about a persona; nil without a file.
func readExpected(path string) (*expected, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil //nolint:nilnil // documented: there are none
	}
	if err != nil {
		return nil, &InputError{File: path, Problem: err.Error()}
	}
	var file struct {
		Questions map[string][]struct {
			Question  string `json:"question"`
			Kept      any    `json:"memory_evidence"`
			Forgotten any    `json:"forgetting_evidence"`
		} `json:"questions"`
	}
	if err := json.Unmarshal(data, &file); err != nil {
		return nil, jsonError(
			path,
			1,
			data,
			err,
			`it holds {"questions": {KIND: [{"question": …, "memory_evidence": …, "forgetting_evidence": …}]}}`,
		)
	}
	a := &expected{}
	for _, kind := range sortedKeys(file.Questions) {
		for _, q := range file.Questions[kind] {
			collect(q.Kept, q.Question, &a.Kept)
			collect(q.Forgotten, q.Question, &a.Forgotten)
		}
	}
	return a, nil
}

// collect finds the facts in evidence of any structure: objects with a session_id and a text as value or item. Numbers (amounts, steps)
// cannot be matched by words and are skipped.
func collect(evidence any, question string, facts *[]fact) {
	switch e := evidence.(type) {
	case []any:
		for _, part := range e {
			collect(part, question, facts)
		}
	case map[string]any:
		session, here := e["session_id"].(float64)
		value, _ := e["value"].(string)
		item, _ := e["item"].(string)
		if text := cmp.Or(value, item); here && text != "" {
			*facts = append(*facts, fact{text, int(session), question})
			return
		}
		for _, key := range sortedKeys(e) {
			collect(e[key], question, facts)
		}
	}
}

// messageID returns the id of a turn, unique for the user.
func (s *personaSession) messageID(t personaTurn) string {
	return sessionPrefix(s.ID) + strconv.Itoa(t.Turn)
}

func sessionPrefix(session int) string { return "s" + strconv.Itoa(session) + ":" }
