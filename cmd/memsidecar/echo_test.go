package main

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
)

// echoes are how a bot's dialogue gives back what was retrieved, in a language: block is what Retrieve answered.
type echoes struct {
	facts  []string // what the user really said
	rounds []func(block string) []*memsidecarv1.Message
}

func systemSays(text string) *memsidecarv1.Message {
	return &memsidecarv1.Message{Role: memsidecarv1.Role_ROLE_SYSTEM, Content: text}
}

// cut is a part of a text, in percent of its characters.
func cut(text string, from, to int) string {
	runes := []rune(text)
	return string(runes[len(runes)*from/100 : len(runes)*to/100])
}

// rebulleted are the memories of a block without the wording around them, with other bullets.
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
				return turns(systemSays("你是一个助手。\n"+b), said("嗯"), answered("你喜欢猫。"), said("嗯"))
			},
			func(b string) []*memsidecarv1.Message {
				return turns(said(b+"\n\n哈哈"), answered("我记得你很喜欢猫，对吧？"), said("对"))
			},
			func(b string) []*memsidecarv1.Message {
				return turns(said("好的\n"+cut(b, 0, 85)), answered("你住在北京，对吧？"), said("对的，没错"))
			},
			func(b string) []*memsidecarv1.Message {
				return turns(said(cut(b, 20, 100)), answered("看得出来你是个爱猫的人。"), said("嗯嗯"))
			},
			func(b string) []*memsidecarv1.Message { return turns(answered(b), said("嗯，对")) },
			func(b string) []*memsidecarv1.Message {
				return turns(said(rebulleted(b, "* ")), answered("你不是喜欢猫吗？"), said("对啊"))
			},
			func(string) []*memsidecarv1.Message {
				return turns(said("用户喜欢猫。用户住在北京。"), answered("你对花生过敏，所以别吃花生酱。"), said("好的，谢谢"))
			},
		},
	},
	"en": {
		facts: []string{"I like cats.", "I live in Berlin.", "I am allergic to peanuts."},
		rounds: []func(string) []*memsidecarv1.Message{
			func(b string) []*memsidecarv1.Message {
				return turns(systemSays("You are a helpful bot.\n"+b), said("hi"), answered("You like cats."), said("yes right"))
			},
			func(b string) []*memsidecarv1.Message {
				return turns(said(b+"\n\nhaha"), answered("I remember that you love cats, right?"), said("Yes, right."))
			},
			func(b string) []*memsidecarv1.Message {
				return turns(said("ok\n"+cut(b, 0, 85)), answered("You live in Berlin, right?"), said("yep"))
			},
			func(b string) []*memsidecarv1.Message {
				return turns(said(cut(b, 20, 100)), answered("You are such a cat person!"), said("haha thanks"))
			},
			func(b string) []*memsidecarv1.Message { return turns(answered(b), said("yes, right")) },
			func(b string) []*memsidecarv1.Message {
				return turns(said(rebulleted(b, "• ")), answered("You are a big fan of cats, aren't you?"), said("Yes"))
			},
			func(string) []*memsidecarv1.Message {
				return turns(said("The user likes cats. The user lives in Berlin."), answered("You're allergic to peanuts, so no peanut butter."), said("ok, thanks"))
			},
		},
	},
}

// TestEchoes: what is retrieved comes back hundreds of times, pasted whole or in part, told by the bot in other words and
// confirmed by the user. No memory comes of it, whether rules decide or a model that restates all it sees.
func TestEchoes(t *testing.T) {
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
				r := serve(t, settings...)
				scope := direct("u")
				for _, fact := range e.facts {
					r.consider(t, scope, said(fact))
				}
				before := texts(r.list(t, scope))
				if len(before) != len(e.facts) {
					t.Fatalf("of %q was remembered: %q", e.facts, before)
				}
				for round := range rounds {
					resp := must(r.Retrieve(t.Context(), &memsidecarv1.RetrieveRequest{Scope: scope, Query: strings.Join(e.facts, " ")}))(t)
					if len(resp.GetMemories()) != len(e.facts) {
						t.Fatalf("round %d: retrieved %v", round, resp.GetMemories())
					}
					dialogue := e.rounds[round%len(e.rounds)](resp.GetPromptContext())
					c := must(r.ConsiderMemorizing(t.Context(), &memsidecarv1.ConsiderMemorizingRequest{
						Scope: scope, Messages: dialogue, Wait: patiently(),
					}))(t).GetConsideration()
					for _, change := range c.GetChanges() {
						if change.GetAction() != reinforced {
							t.Fatalf("round %d: %v became %v (%s)", round, dialogue, change, c.GetReason())
						}
					}
					if state := c.GetState(); state != remembered && state != skipped {
						t.Fatalf("round %d: %s", round, c)
					}
				}
				if after := texts(r.list(t, scope)); !slices.Equal(before, after) {
					t.Errorf("%d rounds made %q of %q", rounds, after, before)
				}
			})
		}
	}
}

var transcriptLine = regexp.MustCompile(`(?m)^\[(m\d+)\] \S+ \S+ \S+ (\w+)[^:]*: (".*")`)

// restate is a model that remembers everything it sees as said about the user, citing what it read and what the user said.
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
	statements := []any{}
	for _, l := range lines {
		var text string
		if json.Unmarshal([]byte(l[3]), &text) != nil {
			continue
		}
		for _, s := range sentenceOf.FindAllString(text, -1) {
			if s = strings.TrimSpace(thirdPerson.Replace(s)); s == "" {
				continue
			}
			statements = append(statements, map[string]any{
				"text": s, "kind": "fact", "importance": 0.5, "quote": "", "messages": append([]string{l[1]}, own...),
			})
		}
	}
	answer, err := json.Marshal(map[string]any{"statements": statements})
	if err != nil {
		return fmt.Sprint(err)
	}
	return string(answer)
}

// TestOnlyEchoes: a dialogue of nothing but what was handed out is skipped and says so; the session keeps it as it was sent,
// and no mention is counted. What the user really says again is one.
func TestOnlyEchoes(t *testing.T) {
	r := serve(t)
	scope := direct("u")
	scope.SessionId = "s"
	r.consider(t, scope, said("我喜欢猫。"))
	block := must(r.Retrieve(t.Context(), &memsidecarv1.RetrieveRequest{Scope: scope, Query: "猫"}))(t).GetPromptContext()
	c := r.consider(t, scope, said(block), answered("好的"))
	if c.GetState() != skipped || !strings.Contains(c.GetReason(), "nothing of the user's words is left") {
		t.Errorf("a pasted block is %s", c)
	}
	if m := r.list(t, scope); len(m) != 1 || m[0].GetMentionCount() != 1 {
		t.Errorf("after the echo: %v", m)
	}
	history := must(memsidecarv1.NewSessionServiceClient(r.conn).ListMessages(t.Context(), &memsidecarv1.ListMessagesRequest{Scope: scope}))(t)
	if !slices.ContainsFunc(history.GetMessages(), func(m *memsidecarv1.SessionMessage) bool { return m.GetMessage().GetContent() == block }) {
		t.Error("the session does not keep what was sent")
	}
	if c := r.consider(t, scope, said(block+"\n\n我对花生过敏。")); len(c.GetChanges()) != 1 || c.GetChanges()[0].GetAction() != added || !strings.Contains(c.GetReason(), "handed out") {
		t.Errorf("the user's own words after a block: %s", c)
	}
	if c := r.consider(t, scope, said("我喜欢猫。")); len(c.GetChanges()) != 1 || c.GetChanges()[0].GetAction() != reinforced {
		t.Errorf("said again: %s", c)
	}
}
