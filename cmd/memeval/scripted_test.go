package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/memsidecar/memsidecar/internal/provider/providertest"
)

// record is what a request says: the known memories and the messages, by the names that the request gives them.
type record struct {
	Text  string            // all between the marks
	Known map[string]string // "k0" to the memory's text
	Turns map[string]string // "m0" to the message's content
	New   []string          // "user: content" of each new message
	order []string          // names of messages, oldest first
}

var (
	recordOf   = regexp.MustCompile(`(?s)===== record \w+ begins =====\n(.*?)===== record \w+ ends =====`)
	recordLine = regexp.MustCompile(`^\[([km]\d+)\] \S+(?: \w+ [\d:]+ (\w+))?[^"]*(?:"[^"]*": )?(".*")$`)
	citation   = regexp.MustCompile(`"[km]\d+"`)
)

func readRecord(prompt string) (r record, err error) {
	found := recordOf.FindStringSubmatch(prompt)
	if found == nil {
		return r, fmt.Errorf("the prompt has no record: %s", prompt)
	}
	r = record{Text: found[1], Known: map[string]string{}, Turns: map[string]string{}}
	fresh := false
	for line := range strings.Lines(r.Text) {
		line = strings.TrimSpace(line)
		fresh = fresh || line == "New messages:"
		parts := recordLine.FindStringSubmatch(line)
		if parts == nil {
			continue
		}
		name, text := parts[1], ""
		if err := json.Unmarshal([]byte(parts[3]), &text); err != nil {
			return r, fmt.Errorf("%s: %w", line, err)
		}
		if name[0] == 'k' {
			r.Known[name] = text
			continue
		}
		r.Turns[name] = text
		if r.order = append(r.order, name); fresh {
			r.New = append(r.New, parts[2]+": "+text)
		}
	}
	return r, nil
}

// scriptedAnswer is the answer to a request with these new messages. Cites are the memories and messages that it names, as the request
// named them that it was written for.
type scriptedAnswer struct {
	New    []string          `json:"new"`
	Cites  map[string]string `json:"cites,omitempty"`
	Answer string            `json:"answer"`
}

// in returns the answer with the names of another request. ok is false if that lacks something that the answer cites.
func (a scriptedAnswer) in(r record) (text string, ok bool) {
	names := map[string]string{}
	for name, said := range a.Cites {
		for other, text := range r.Known {
			if name[0] == 'k' && text == said {
				names[name] = other
			}
		}
		for _, other := range r.order {
			if name[0] == 'm' && r.Turns[other] == said {
				names[name] = other
			}
		}
		if names[name] == "" {
			return "", false
		}
	}
	return citation.ReplaceAllStringFunc(a.Answer, func(quoted string) string {
		if other, ok := names[strings.Trim(quoted, `"`)]; ok {
			return `"` + other + `"`
		}
		return quoted
	}), true
}

// scriptedModel answers requests as a function says.
type scriptedModel struct {
	url    string
	answer func(r record) string
}

func newScriptedModel(t *testing.T, answer func(r record) string) *scriptedModel {
	t.Helper()
	m := &scriptedModel{answer: answer}
	m.url = providertest.Play(t, m.serve).URL
	return m
}

// settings are flags by which memeval uses the model.
func (m *scriptedModel) settings() []string {
	return []string{
		"--set", "summary.provider=openai", "--set", "summary.endpoint=" + m.url, "--set", "summary.api_key=none", "--set", "summary.model=scripted",
	}
}

// answerList has written answers.
type answerList struct {
	mu      sync.Mutex
	answers map[string][]scriptedAnswer // by the new messages
	unknown []record                    // requests that no answer was written for
}

func readAnswers(t *testing.T, path string) *answerList {
	t.Helper()
	m := &answerList{answers: map[string][]scriptedAnswer{}}
	for line := range strings.Lines(string(read(t, path))) {
		var a scriptedAnswer
		decode(t, []byte(line), &a)
		key := strings.Join(a.New, "\n")
		m.answers[key] = append(m.answers[key], a)
	}
	for _, list := range m.answers { // the one that relies on more goes first
		slices.SortStableFunc(list, func(a, b scriptedAnswer) int { return len(b.Cites) - len(a.Cites) })
	}
	return m
}

func (m *scriptedModel) serve(w http.ResponseWriter, request *http.Request) {
	var chat struct {
		Messages []struct {
			Content string `json:"content"`
		} `json:"messages"`
	}
	body, err := io.ReadAll(request.Body)
	if err != nil || json.Unmarshal(body, &chat) != nil {
		panic(http.ErrAbortHandler)
	}
	var prompt strings.Builder
	for _, message := range chat.Messages {
		prompt.WriteString(message.Content + "\n")
	}
	r, err := readRecord(prompt.String())
	if err != nil {
		providertest.JSON(http.StatusBadRequest, `{"error":{"message":"the request has no record"}}`)(w, request)
		return
	}
	answer := m.answer(r)
	text, _ := json.Marshal(answer) // a string can always be encoded
	providertest.JSON(http.StatusOK, fmt.Sprintf(`{"choices":[{"message":{"role":"assistant","content":%s},"finish_reason":"stop"}],
		"usage":{"prompt_tokens":%d,"completion_tokens":%d}}`, text, prompt.Len()/4, len(answer)/4))(w, request)
}

func (m *answerList) answer(r record) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	list, known := m.answers[strings.Join(r.New, "\n")]
	for _, a := range list {
		if text, ok := a.in(r); ok {
			return text
		}
	}
	if !known {
		m.unknown = append(m.unknown, r)
	}
	return `{"ops":[]}`
}

// recordUnknown writes the requests that no answer was written for, to write answers for them.
func (m *answerList) recordUnknown(t *testing.T, path string) {
	t.Helper()
	var out strings.Builder
	seen := map[string]bool{}
	for _, r := range m.unknown {
		if key := strings.Join(r.New, "\n"); !seen[key] {
			seen[key] = true
			line, err := json.Marshal(r)
			if err != nil {
				t.Fatal(err)
			}
			out.Write(append(line, '\n'))
		}
	}
	write(t, path, out.String())
}

// TestScriptedAnswers: With written answers, the series are passed as often as the answers allow. An answer is only given to a request
// that has the last turns and known memories that the answer relies on. It tests what is made of answers, and no model.
//
// RECORD_REQUESTS=FOLDER writes the requests that have no answer yet.
func TestScriptedAnswers(t *testing.T) {
	t.Parallel()
	for quality, least := range map[string]float64{"capable": .95, "weaker": .75} {
		t.Run(quality, func(t *testing.T) {
			t.Parallel()
			m := readAnswers(t, evalFiles+"answers/"+quality+".jsonl")
			settings := newScriptedModel(t, m.answer).settings()
			numbers, _, misses := evaluate(t, append([]string{"talk", evalFiles + "series/series.jsonl"}, settings...)...)
			if dir := os.Getenv("RECORD_REQUESTS"); dir != "" {
				m.recordUnknown(t, filepath.Join(dir, quality+".requests.jsonl"))
				return
			}
			if len(m.unknown) > 0 {
				t.Errorf("%d requests have no answer: write them as testdata/answers/README.md says", len(m.unknown))
			}
			if calls, _ := numbers["calls.summary"].(float64); calls < 400 {
				t.Errorf("%v calls of the model are counted", calls)
			}
			for _, kind := range []string{
				"answer in next call", "correction in next call", "forget just said", "forget everything", "forget named", "don't save",
				"update chain", "standing instruction",
			} {
				right, _ := numbers["steps."+kind+".right"].(float64)
				count, _ := numbers["steps."+kind+".count"].(float64)
				if count < 20 || right/count < least {
					t.Errorf("%s: %v of %v", kind, right, count)
					for _, miss := range misses {
						if miss["kind"] == kind {
							t.Log(miss)
						}
					}
				}
			}
		})
	}
}
