package server_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/memsidecar/memsidecar/internal/provider/providertest"
	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"

	"github.com/memsidecar/memsidecar/internal/testkit/sidecartest"
)

// echoes are the ways in which a dialogue in one language repeats retrieved memories. block is Retrieve's answer.
type echoes struct {
	facts  []string // what the user said originally
	rounds []func(block string) []*memsidecarv1.Message
}

func systemSays(text string) *memsidecarv1.Message {
	return &memsidecarv1.Message{Role: memsidecarv1.Role_ROLE_SYSTEM, Content: text}
}

// cut returns the part of a text between two percentages of its characters.
func cut(text string, from, to int) string {
	runes := []rune(text)
	return string(runes[len(runes)*from/100 : len(runes)*to/100])
}

// rebulleted returns the memories of a block with other bullets and without the surrounding text.
func rebulleted(block, bullet string) string {
	var lines []string
	for line := range strings.Lines(block) {
		if rest, ok := strings.CutPrefix(line, "- "); ok {
			lines = append(lines, bullet+strings.TrimSpace(rest))
		}
	}
	return strings.Join(lines, "\n")
}

func turns(list ...*memsidecarv1.Message) []*memsidecarv1.Message { return list }

var echoesByLanguage = map[string]echoes{
	"zh": {
		facts: []string{"我喜欢猫。", "我住在北京。", "我对花生过敏。"},
		rounds: []func(string) []*memsidecarv1.Message{
			func(b string) []*memsidecarv1.Message {
				return turns(systemSays("你是一个助手。\n"+b), sidecartest.Said("嗯"), sidecartest.Answered("你喜欢猫。"), sidecartest.Said("嗯"))
			},
			func(b string) []*memsidecarv1.Message {
				return turns(sidecartest.Said(b+"\n\n哈哈"), sidecartest.Answered("我记得你很喜欢猫，对吧？"), sidecartest.Said("对"))
			},
			func(b string) []*memsidecarv1.Message {
				return turns(sidecartest.Said("好的\n"+cut(b, 0, 85)), sidecartest.Answered("你住在北京，对吧？"), sidecartest.Said("对"))
			},
			func(b string) []*memsidecarv1.Message {
				return turns(sidecartest.Said(cut(b, 20, 100)), sidecartest.Answered("看得出来你是个爱猫的人。"), sidecartest.Said("嗯嗯"))
			},
			func(b string) []*memsidecarv1.Message {
				return turns(sidecartest.Answered(b), sidecartest.Said("嗯，对"))
			},
			func(b string) []*memsidecarv1.Message {
				return turns(sidecartest.Said(rebulleted(b, "* ")), sidecartest.Answered("你不是喜欢猫吗？"), sidecartest.Said("对啊"))
			},
			func(string) []*memsidecarv1.Message {
				return turns(sidecartest.Said("用户喜欢猫。用户住在北京。"), sidecartest.Answered("你对花生过敏，所以别吃花生酱。"), sidecartest.Said("好的，谢谢"))
			},
		},
	},
	"en": {
		facts: []string{"I like cats.", "I live in Berlin.", "I am allergic to peanuts."},
		rounds: []func(string) []*memsidecarv1.Message{
			func(b string) []*memsidecarv1.Message {
				return turns(
					systemSays("You are a helpful bot.\n"+b),
					sidecartest.Said("hi"),
					sidecartest.Answered("You like cats."),
					sidecartest.Said("yes right"),
				)
			},
			func(b string) []*memsidecarv1.Message {
				return turns(sidecartest.Said(b+"\n\nhaha"), sidecartest.Answered("I remember that you love cats, right?"), sidecartest.Said("Yes, right."))
			},
			func(b string) []*memsidecarv1.Message {
				return turns(sidecartest.Said("ok\n"+cut(b, 0, 85)), sidecartest.Answered("You live in Berlin, right?"), sidecartest.Said("yep"))
			},
			func(b string) []*memsidecarv1.Message {
				return turns(sidecartest.Said(cut(b, 20, 100)), sidecartest.Answered("You are such a cat person!"), sidecartest.Said("haha thanks"))
			},
			func(b string) []*memsidecarv1.Message {
				return turns(sidecartest.Answered(b), sidecartest.Said("yes, right"))
			},
			func(b string) []*memsidecarv1.Message {
				return turns(sidecartest.Said(rebulleted(b, "• ")), sidecartest.Answered("You are a big fan of cats, aren't you?"), sidecartest.Said("Yes"))
			},
			func(string) []*memsidecarv1.Message {
				return turns(
					sidecartest.Said("The user likes cats. The user lives in Berlin."),
					sidecartest.Answered("You're allergic to peanuts, so no peanut butter."),
					sidecartest.Said("ok, thanks"),
				)
			},
		},
	},
}

// TestRetrievedTextIsNotLearnedAgain: Retrieved text comes back hundreds of times: pasted, in part, paraphrased by the bot, confirmed by
// the user. It becomes no new memory, whether rules decide or a model that repeats everything it reads.
func TestRetrievedTextIsNotLearnedAgain(t *testing.T) {
	t.Parallel()
	for _, by := range []string{"rules", "model"} {
		for language, e := range echoesByLanguage {
			t.Run(by+" "+language, func(t *testing.T) {
				t.Parallel()
				settings, rounds := []string{"trace.retention=0"}, echoRounds
				if by == "model" {
					rounds = max(rounds/5, len(e.rounds))
					p := providertest.Play(t, restate)
					for _, part := range []string{"decision", "summary"} {
						settings = append(settings, part+".provider=openai", part+".endpoint="+p.URL, part+".api_key=x", part+".model=parrot")
					}
				}
				r := sidecartest.Serve(t, settings...)
				scope := sidecartest.Direct("u")
				for _, fact := range e.facts {
					r.Consider(t, scope, sidecartest.Said(fact))
				}
				before := sidecartest.Texts(r.Memories(t, scope))
				if len(before) != len(e.facts) {
					t.Fatalf("of %q was remembered: %q", e.facts, before)
				}
				for round := range rounds {
					resp := sidecartest.Must(r.Retrieve(t.Context(), &memsidecarv1.RetrieveRequest{Scope: scope, Query: strings.Join(e.facts, " ")}))(t)
					if len(resp.GetStanding())+len(resp.GetMemories()) != len(e.facts) {
						t.Fatalf("round %d: retrieved %v", round, resp)
					}
					dialogue := e.rounds[round%len(e.rounds)](resp.GetPromptContext())
					c := sidecartest.Must(r.ConsiderMemorizing(t.Context(), &memsidecarv1.ConsiderMemorizingRequest{
						Scope: scope, Messages: dialogue, Wait: sidecartest.LongWait(),
					}))(t).GetConsideration()
					for _, change := range c.GetChanges() {
						if change.GetAction() != sidecartest.Reinforced {
							t.Fatalf("round %d: %v became %v (%s)", round, dialogue, change, c.GetReason())
						}
					}
					if state := c.GetState(); state != sidecartest.Remembered && state != sidecartest.Skipped {
						t.Fatalf("round %d: %s", round, c)
					}
				}
				if after := sidecartest.Texts(r.Memories(t, scope)); !slices.Equal(before, after) {
					t.Errorf("%d rounds made %q of %q", rounds, after, before)
				}
			})
		}
	}
}

var transcriptLine = regexp.MustCompile(`(?m)^\[(m\d+)\] \S+ \S+ \S+ (\w+)[^:]*: (".*")`)

// restate is a model that remembers all of its input as statements of the user, with citations.
func restate(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	var request struct {
		Messages []struct {
			Content string `json:"content"`
		} `json:"messages"`
	}
	if err := json.Unmarshal(body, &request); err != nil || len(request.Messages) == 0 {
		http.Error(w, "no messages", http.StatusBadRequest)
		return
	}
	prompt := request.Messages[len(request.Messages)-1].Content
	content := `{"should_remember": true, "reason": "all of it matters"}`
	if !strings.Contains(prompt, "should_remember") {
		content = restated(prompt)
	}
	answer, err := json.Marshal(map[string]any{"choices": []any{map[string]any{
		"index": 0, "finish_reason": "stop", "message": map[string]any{"role": "assistant", "content": content},
	}}})
	if err != nil {
		return
	}
	providertest.JSON(http.StatusOK, string(answer))(w, r)
}

var sentenceOf = regexp.MustCompile(`[^。！？!?\n]+[。！？!?]?`)

func restated(prompt string) string {
	lines := transcriptLine.FindAllStringSubmatch(prompt, -1)
	var own []string
	for _, l := range lines {
		if l[2] == "user" {
			own = append(own, l[1])
		}
	}
	thirdPerson := strings.NewReplacer("我", "用户", "你", "用户", "You're", "The user is", "You are", "The user is", "I am", "The user is",
		"You ", "The user ", "you ", "the user ", "I ", "The user ")
	ops := []any{}
	for _, l := range lines {
		var text string
		if json.Unmarshal([]byte(l[3]), &text) != nil {
			continue
		}
		for _, s := range sentenceOf.FindAllString(text, -1) {
			if s = strings.TrimSpace(thirdPerson.Replace(s)); s == "" {
				continue
			}
			ops = append(ops, map[string]any{
				"op": "add", "ids": []string{}, "text": s, "kind": "fact", "importance": 0.5, "about": "user", "holds": "now", "until": "",
				"asked": false, "from": append([]string{l[1]}, own...),
			})
		}
	}
	answer, err := json.Marshal(map[string]any{"ops": ops})
	if err != nil {
		return fmt.Sprint(err)
	}
	return string(answer)
}

// TestDialogueOfRetrievedTextIsSkipped: A dialogue that only repeats retrieved text is skipped, with that reason. The session keeps it
// unchanged, and no mention is counted. A real repetition by the user is counted.
func TestDialogueOfRetrievedTextIsSkipped(t *testing.T) {
	t.Parallel()
	r := sidecartest.Serve(t)
	scope := sidecartest.Direct("u")
	scope.SessionId = "s"
	r.Consider(t, scope, sidecartest.Said("我喜欢猫。"))
	block := sidecartest.Must(r.Retrieve(t.Context(), &memsidecarv1.RetrieveRequest{Scope: scope, Query: "猫"}))(t).GetPromptContext()
	c := r.Consider(t, scope, sidecartest.Said(block), sidecartest.Answered("好的"))
	if c.GetState() != sidecartest.Skipped || !strings.Contains(c.GetReason(), "nothing of the user's words is left") {
		t.Errorf("a pasted block is %s", c)
	}
	if m := r.Memories(t, scope); len(m) != 1 || m[0].GetMentionCount() != 1 {
		t.Errorf("after the echo: %v", m)
	}
	history := sidecartest.Must(memsidecarv1.NewSessionServiceClient(r.Conn).ListMessages(t.Context(), &memsidecarv1.ListMessagesRequest{Scope: scope}))(t)
	if !slices.ContainsFunc(history.GetMessages(), func(m *memsidecarv1.SessionMessage) bool { return m.GetMessage().GetContent() == block }) {
		t.Error("the session does not keep the original messages")
	}
	if c := r.Consider(t, scope, sidecartest.Said(block+"\n\n我对花生过敏。")); len(c.GetChanges()) != 1 || c.GetChanges()[0].GetAction() != sidecartest.Added ||
		!strings.Contains(c.GetReason(), "handed out") {
		t.Errorf("the user's own words after a block: %s", c)
	}
	if c := r.Consider(t, scope, sidecartest.Said("我喜欢猫。")); len(c.GetChanges()) != 1 || c.GetChanges()[0].GetAction() != sidecartest.Reinforced {
		t.Errorf("said again: %s", c)
	}
}
