package memory

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"
)

// Limits of a dialogue.
const (
	MaxMessages      = 1000
	MaxContentBytes  = 256 << 10 // of one message's content, metadata, or tool call's arguments or result
	MaxDialogueBytes = 4 << 20   // of all of them together
	MaxToolCalls     = 100       // of one message
)

// Role is in what capacity a message was spoken.
type Role string

// The roles.
const (
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
	RoleSystem    Role = "system"
	RoleTool      Role = "tool"
)

// Message is one utterance of a dialogue. Its JSON form is what the database keeps.
type Message struct {
	ID       string     `json:"id,omitempty"`
	Role     Role       `json:"role"`
	Speaker  string     `json:"speaker,omitempty"` // user id, of RoleUser only; empty only before Complete
	AgentID  string     `json:"agent,omitempty"`
	Content  string     `json:"content,omitempty"`
	Time     time.Time  `json:"time"` // zero only before Complete
	Tools    []ToolCall `json:"tools,omitempty"`
	Metadata string     `json:"metadata,omitempty"` // a JSON object, byte for byte as sent
}

// ToolCall is one call of a tool made while a message was being answered.
type ToolCall struct {
	ID        string         `json:"id,omitempty"`
	Name      string         `json:"name,omitempty"`
	Arguments string         `json:"arguments,omitempty"` // JSON, byte for byte as sent
	Result    string         `json:"result,omitempty"`
	Status    string         `json:"status,omitempty"`
	Duration  *time.Duration `json:"duration,omitempty"` // nil: not said
	Time      time.Time      `json:"time,omitzero"`
}

// Dialogue is what is handed to ConsiderMemorizing.
type Dialogue struct {
	Scope    Scope
	Messages []Message
}

// Speakers lists the people whose words the dialogue may hold: the scope's user first, then every other human speaker
// in order of first appearance.
func (d Dialogue) Speakers() []string {
	speakers := []string{d.Scope.UserID}
	seen := map[string]bool{d.Scope.UserID: true}
	for _, m := range d.Messages {
		if m.Role == RoleUser && !seen[m.Speaker] {
			seen[m.Speaker] = true
			speakers = append(speakers, m.Speaker)
		}
	}
	return speakers
}

// Complete returns the dialogue with the times, speakers and agents that its messages leave out: the given time, and the user and the
// agent of the scope.
func (d Dialogue) Complete(now time.Time) Dialogue {
	now = now.UTC().Truncate(time.Microsecond) // every format and database keeps microseconds
	d.Messages = slices.Clone(d.Messages)
	for i := range d.Messages {
		m := &d.Messages[i]
		if m.Time.IsZero() {
			m.Time = now
		}
		if m.Role == RoleUser && m.Speaker == "" {
			m.Speaker = d.Scope.UserID
		}
		if m.AgentID == "" {
			m.AgentID = d.Scope.AgentID
		}
	}
	return d
}

// PayloadHash returns a hash of what a caller sent, before anything is filled in. Two requests with the same id must agree in it.
func PayloadHash(payload any) ([]byte, error) {
	data, err := json.Marshal(payload)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(data)
	return sum[:16], nil
}

// Hashes returns the payload hash of each message.
func Hashes(messages []Message) ([][]byte, error) {
	hashes := make([][]byte, len(messages))
	for i := range messages {
		hash, err := PayloadHash(messages[i])
		if err != nil {
			return nil, err
		}
		hashes[i] = hash
	}
	return hashes, nil
}

// MessageRef names the i-th message of a dialogue in provenance: by its id, or by position.
func (d Dialogue) MessageRef(i int) string {
	if id := d.Messages[i].ID; id != "" {
		return id
	}
	return PositionRef(i)
}

// PositionRef names the i-th message of a dialogue in provenance.
func PositionRef(i int) string { return "#" + strconv.Itoa(i) }

// Without is the dialogue with the speaker's words emptied. The messages keep their places, because memories cite them
// by position. When no person's words are left, what the bot answered goes too. removed counts the speaker's messages.
func (d Dialogue) Without(speaker string) (rest Dialogue, removed int) {
	rest = d
	rest.Messages = slices.Clone(d.Messages)
	people := false
	for i, m := range rest.Messages {
		switch {
		case m.Role != RoleUser:
		case m.Speaker == speaker:
			rest.Messages[i] = emptied(m)
			removed++
		default:
			people = true
		}
	}
	if !people {
		for i, m := range rest.Messages {
			rest.Messages[i] = emptied(m)
		}
	}
	return rest, removed
}

// WithoutAnswers is the dialogue with everything emptied that was not said by people. The messages keep their places.
func (d Dialogue) WithoutAnswers() Dialogue {
	d.Messages = slices.Clone(d.Messages)
	for i, m := range d.Messages {
		if m.Role != RoleUser {
			d.Messages[i] = emptied(m)
		}
	}
	return d
}

func emptied(m Message) Message { return Message{Role: RoleSystem, Time: m.Time} }

// Validate reports what is wrong with the messages; fields are named "messages[2].content" and so on.
func (d Dialogue) Validate() Violations {
	var v Violations
	switch n := len(d.Messages); {
	case n == 0:
		v.Add("messages", "is required: hand over at least one message")
	case n > MaxMessages:
		v.Add("messages", "has %d messages, more than %d: hand the dialogue over in parts", n, MaxMessages)
		return v
	}
	total := 0
	ids := map[string]int{}
	for i, m := range d.Messages {
		at := fmt.Sprintf("messages[%d]", i)
		m.validate(&v, at)
		total += m.Size()
		if first, ok := ids[m.ID]; ok && m.ID != "" {
			v.Add(at+".id", "is the same as that of messages[%d]: ids are unique in a dialogue", first)
		}
		ids[m.ID] = i
	}
	if total > MaxDialogueBytes {
		v.Add("messages", "are %d bytes together, more than %d: hand the dialogue over in parts", total, MaxDialogueBytes)
	}
	return v
}

// Size is that of the message's texts in bytes.
func (m *Message) Size() int {
	size := len(m.Content) + len(m.Metadata)
	for _, call := range m.Tools {
		size += len(call.Arguments) + len(call.Result)
	}
	return size
}

func (m *Message) validate(v *Violations, at string) {
	v.Check(at+".id", IDProblem(m.ID))
	v.Check(at+".speaker_id", IDProblem(m.Speaker))
	v.Check(at+".agent_id", IDProblem(m.AgentID))
	switch m.Role {
	case RoleUser, RoleAssistant, RoleSystem, RoleTool:
	default:
		v.Add(at+".role", "is required: ROLE_USER, ROLE_ASSISTANT, ROLE_SYSTEM or ROLE_TOOL")
	}
	if m.Role != RoleUser && m.Speaker != "" {
		v.Add(at+".speaker_id", "is for ROLE_USER only: it names the person who spoke")
	}
	if !m.Time.IsZero() { // Complete sets it
		v.Check(at+".send_time", TimeProblem(m.Time))
	}
	v.Check(at+".content", bytesProblem(m.Content))
	v.Check(at+".metadata_json", bytesProblem(m.Metadata))
	if m.Metadata != "" && !isJSONObject(m.Metadata) {
		v.Add(at+".metadata_json", "is not a JSON object")
	}
	if len(m.Tools) > MaxToolCalls {
		v.Add(at+".tool_calls", "has more than %d calls", MaxToolCalls)
		return
	}
	for j, call := range m.Tools {
		in := fmt.Sprintf("%s.tool_calls[%d]", at, j)
		v.Check(in+".id", IDProblem(call.ID))
		v.Check(in+".name", IDProblem(call.Name))
		v.Check(in+".status", IDProblem(call.Status))
		v.Check(in+".arguments_json", bytesProblem(call.Arguments))
		v.Check(in+".result", bytesProblem(call.Result))
		if call.Arguments != "" && !json.Valid([]byte(call.Arguments)) {
			v.Add(in+".arguments_json", "is not JSON")
		}
		if call.Duration != nil && *call.Duration < 0 {
			v.Add(in+".duration", "is negative")
		}
		if !call.Time.IsZero() {
			v.Check(in+".start_time", TimeProblem(call.Time))
		}
	}
}

func bytesProblem(s string) string {
	switch {
	case len(s) > MaxContentBytes:
		return fmt.Sprintf("is %d bytes, more than %d", len(s), MaxContentBytes)
	case !utf8.ValidString(s):
		return "is not valid UTF-8"
	}
	return ""
}

// TimeProblem says what is wrong with a time that a caller gave, or "": no calendar or database can be expected to handle
// any year.
func TimeProblem(t time.Time) string {
	if year := t.UTC().Year(); year < 1900 || year > 9999 {
		return fmt.Sprintf("is in the year %d: times are between 1900 and 9999", year)
	}
	return ""
}

func isJSONObject(s string) bool {
	var object map[string]json.RawMessage
	return json.Unmarshal([]byte(s), &object) == nil && object != nil
}
