package eval

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// conversation is one conversation of a LoCoMo file: two people, their sessions in order, and questions about them.
type conversation struct {
	ID        string
	Speakers  [2]string // the first one is the user in the first pass
	Sessions  []talk
	Questions []question
}

// talk is one session.
type talk struct {
	Number int
	Turns  []turn
}

// turn is a message of a speaker.
type turn struct {
	ID   string // dia_id
	By   int    // 0 or 1, in Speakers
	Text string // including an image's caption
	Time time.Time
}

// question is a question whose answer is in its evidence turns.
type question struct {
	Text     string
	Category int
	Evidence []string // dia_ids, each once
}

// rawConversation is a conversation in the file's format.
type rawConversation struct {
	ID           string                     `json:"sample_id"`
	Conversation map[string]json.RawMessage `json:"conversation"`
	Questions    []struct {
		Question string          `json:"question"`
		Evidence json.RawMessage `json:"evidence"`
		Category int             `json:"category"`
	} `json:"qa"`
}

type rawTurn struct {
	Speaker string `json:"speaker"`
	ID      string `json:"dia_id"`
	Text    string `json:"text"`
	Caption string `json:"blip_caption"`
}

// readLoCoMo reads a file of LoCoMo's format: a JSON array of conversations.
func readLoCoMo(path string) ([]conversation, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, &InputError{File: path, Problem: err.Error()}
	}
	var raw []rawConversation
	if err := json.Unmarshal(data, &raw); err != nil {
		return nil, jsonError(path, 1, data, err, "a LoCoMo file is a JSON array of conversations")
	}
	if len(raw) == 0 {
		return nil, &InputError{File: path, Problem: "holds no conversation"}
	}
	var conversations []conversation
	for i := range raw {
		raw[i].ID = cmp.Or(raw[i].ID, fmt.Sprintf("conversation-%d", i+1))
		c, err := raw[i].conversation()
		if err != nil {
			return nil, &InputError{File: path, Line: lineOf(data, raw[i].ID), Problem: fmt.Sprintf("conversation %s: %v", raw[i].ID, err)}
		}
		conversations = append(conversations, c)
	}
	return conversations, nil
}

// jsonError returns an error with the line of invalid JSON. The data begin at line first of the file.
func jsonError(path string, first int, data []byte, err error, expected string) error {
	offset := int64(0)
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		offset = syntax.Offset
	} else if typed, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		offset = typed.Offset
	}
	line := first + bytes.Count(data[:min(int(offset), len(data))], []byte("\n"))
	return &InputError{File: path, Line: line, Problem: err.Error() + "; " + expected}
}

// lineOf returns the line with a conversation's id, or 0.
func lineOf(data []byte, id string) int {
	quoted, err := json.Marshal(id)
	if err != nil {
		return 0
	}
	before, _, found := bytes.Cut(data, quoted)
	if !found {
		return 0
	}
	return 1 + bytes.Count(before, []byte("\n"))
}

var (
	sessionKey = regexp.MustCompile(`^session_(\d+)$`)
	diaID      = regexp.MustCompile(`D\d+:\d+`)
)

func (r *rawConversation) conversation() (conversation, error) {
	c := conversation{ID: r.ID}
	for i, key := range []string{"speaker_a", "speaker_b"} {
		if err := json.Unmarshal(r.Conversation[key], &c.Speakers[i]); err != nil || c.Speakers[i] == "" {
			return c, fmt.Errorf("%s is missing: write who speaks", key)
		}
	}
	for key, value := range r.Conversation {
		found := sessionKey.FindStringSubmatch(key)
		if found == nil {
			continue
		}
		number, err := strconv.Atoi(found[1])
		if err != nil {
			return c, fmt.Errorf("%s: %w", key, err)
		}
		turns, err := r.turns(key, value, c.Speakers)
		if err != nil {
			return c, fmt.Errorf("%s: %w", key, err)
		}
		c.Sessions = append(c.Sessions, talk{number, turns})
	}
	slices.SortFunc(c.Sessions, func(a, b talk) int { return cmp.Compare(a.Number, b.Number) })
	if len(c.Sessions) == 0 {
		return c, errors.New("there is no session_1")
	}
	seen := map[string]bool{}
	for _, s := range c.Sessions {
		for _, t := range s.Turns {
			if seen[t.ID] {
				return c, fmt.Errorf("session_%d: the dia_id %q occurs twice", s.Number, t.ID)
			}
			seen[t.ID] = true
		}
	}
	for _, q := range r.Questions {
		// Some evidence is malformed: several ids in one string, or no id.
		evidence := diaID.FindAllString(string(q.Evidence), -1)
		slices.Sort(evidence)
		c.Questions = append(c.Questions, question{q.Question, q.Category, slices.Compact(evidence)})
	}
	return c, nil
}

func (r *rawConversation) turns(key string, value json.RawMessage, speakers [2]string) ([]turn, error) {
	var raw []rawTurn
	if err := json.Unmarshal(value, &raw); err != nil {
		return nil, err
	}
	if len(raw) == 0 {
		return nil, nil
	}
	var written string
	if err := json.Unmarshal(r.Conversation[key+"_date_time"], &written); err != nil {
		return nil, fmt.Errorf("%s_date_time is missing: write when it was said", key)
	}
	at, err := parseTime(written)
	if err != nil {
		return nil, err
	}
	by := sides(raw, speakers)
	turns := make([]turn, len(raw))
	for i, t := range raw {
		if t.ID == "" {
			return nil, fmt.Errorf("turn %d has no dia_id", i+1)
		}
		// Increasing times, one per message, as a bot would have them.
		turns[i] = turn{t.ID, by[t.Speaker], strings.TrimSpace(t.Text + " " + t.Caption), at.Add(time.Duration(i) * time.Second)}
	}
	return turns, nil
}

// sides maps the names in a session to speakers. Translations spell names in several ways: an unknown name next to a known one is the
// other speaker, and two unknown names are the speakers in order.
func sides(turns []rawTurn, speakers [2]string) map[string]int {
	by := map[string]int{speakers[1]: 1, speakers[0]: 0}
	next := 0
	for _, t := range turns {
		if t.Speaker == speakers[0] {
			next = 1
		}
	}
	for _, t := range turns {
		if _, known := by[t.Speaker]; !known {
			by[t.Speaker] = next
			next = 1
		}
	}
	return by
}

var (
	chineseTime = regexp.MustCompile(`^(\d{4})年(\d{1,2})月(\d{1,2})日[\s，,]*(凌晨|清晨|早上|上午|中午|下午|傍晚|晚上|夜里)?\s*(\d{1,2})[:：](\d{2})$`)
	otherTimes  = []string{"3:04 pm on 2 January, 2006", time.RFC3339, "2006-01-02 15:04", time.DateOnly}
)

// parseTime reads the time of a session. The files name no time zone: UTC is assumed.
func parseTime(written string) (time.Time, error) {
	written = strings.TrimSpace(written)
	for _, layout := range otherTimes {
		if t, err := time.Parse(layout, written); err == nil {
			return t.UTC(), nil
		}
	}
	found := chineseTime.FindStringSubmatch(written)
	if found == nil {
		return time.Time{}, fmt.Errorf("the time %q: write it as %q, \"2023年5月8日下午1:56\" or RFC 3339", written, "1:56 pm on 8 May, 2023")
	}
	var n [5]int
	for i, part := range []string{found[1], found[2], found[3], found[5], found[6]} {
		n[i], _ = strconv.Atoi(part) // at most four digits
	}
	hour := n[3]
	switch found[4] {
	case "下午", "傍晚", "晚上", "夜里":
		if hour < 12 {
			hour += 12
		}
	case "中午":
		if hour < 3 {
			hour += 12
		}
	case "凌晨", "上午":
		hour %= 12
	}
	t := time.Date(n[0], time.Month(n[1]), n[2], hour, n[4], 0, 0, time.UTC)
	if t.Month() != time.Month(n[1]) || t.Day() != n[2] || t.Hour() != hour || t.Minute() != n[4] {
		return time.Time{}, fmt.Errorf("there is no time %q", written)
	}
	return t, nil
}
