package rules_test

import (
	"os"
	"strings"
	"testing"

	"github.com/memsidecar/memsidecar/internal/decide"
	"github.com/memsidecar/memsidecar/internal/decide/classify"
	"github.com/memsidecar/memsidecar/internal/decide/local"
	"github.com/memsidecar/memsidecar/internal/digest"
	"github.com/memsidecar/memsidecar/internal/digest/rules"
	"github.com/memsidecar/memsidecar/internal/memory"
)

// lines returns the lines of a file of examples, without comments.
func lines(t *testing.T, file string) (list []string) {
	t.Helper()
	text, err := os.ReadFile("testdata/" + file)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			list = append(list, line)
		}
	}
	return list
}

func newRules(t *testing.T) *rules.Extractor {
	t.Helper()
	return rules.New(local.New(classify.Default(), local.Options{}))
}

// share logs how many examples were right, and fails below the minimum.
func share(t *testing.T, what string, right, all, least int) {
	t.Helper()
	t.Logf("%s: %d of %d", what, right, all)
	if right < least {
		t.Errorf("%s: %d of %d, want at least %d", what, right, all, least)
	}
}

// TestSolutionIsTheAdviceThatWorked: The solution of a problem is the advice that the user reports to have worked, or what the user found
// instead. The half of the examples that was not used to write the rules has its own minimum.
func TestSolutionIsTheAdviceThatWorked(t *testing.T) {
	for file, least := range map[string]int{"solutions_dev.txt": 22, "solutions_held.txt": 20} {
		t.Run(file, func(t *testing.T) {
			right, issues := 0, 0
			all := lines(t, file)
			for _, line := range all {
				turns := strings.Split(line, " | ")
				want := turns[len(turns)-1]
				p := conversation(turns[:len(turns)-1])
				found, err := newRules(t).Extract(t.Context(), p)
				if err != nil {
					t.Fatal(err)
				}
				var solved []string
				for _, f := range found {
					if f.Category == digest.Issue {
						solved = append(solved, f.Text+" => "+f.Solution)
						issues++
					}
				}
				if len(solved) == 1 && strings.Contains(solved[0][strings.LastIndex(solved[0], " => ")+1:], want) {
					right++
				} else {
					t.Logf("%s: %q", line, solved)
				}
			}
			share(t, file, right, len(all), least)
		})
	}
}

// conversation returns alternating turns of a user and an assistant.
func conversation(turns []string) digest.Piece {
	lines := make([]string, len(turns))
	for i, turn := range turns {
		if lines[i] = turn; i%2 == 0 {
			lines[i] = ">" + turn
		}
	}
	return piece(true, "", lines...)
}

// TestAcknowledgementIsNoMemory: A message that only reports that advice worked states nothing about the user. The user's own solution may
// be remembered.
func TestAcknowledgementIsNoMemory(t *testing.T) {
	for file, least := range map[string]int{"solutions_dev.txt": 22, "solutions_held.txt": 20} {
		t.Run(file, func(t *testing.T) {
			right := 0
			all := lines(t, file)
			for _, line := range all {
				turns := strings.Split(line, " | ")
				want := turns[len(turns)-1]
				last := turns[len(turns)-2]
				var d memory.Dialogue
				d.Scope.UserID = "u"
				for i, turn := range turns[:len(turns)-1] {
					m := memory.Message{Role: memory.RoleAssistant, Content: turn, Time: at}
					if i%2 == 0 {
						m.Role, m.Speaker = memory.RoleUser, "u"
					}
					d.Messages = append(d.Messages, m)
				}
				tr := decide.Transcript{Dialogue: d, Speaker: "u", Location: at.Location()}
				list := local.New(classify.Default(), local.Options{}).Statements(tr)
				remembered := ""
				for _, s := range list {
					if s.Quote != "" && strings.Contains(last, s.Quote) {
						remembered = s.Text
					}
				}
				if remembered == "" || strings.Contains(last, want) {
					right++
				} else {
					t.Logf("%s: remembered %q", line, remembered)
				}
			}
			share(t, file, right, len(all), least)
		})
	}
}

// TestTasks: The user's tasks are found in any wording. Tasks of others, questions, past and hypothetical tasks are not.
func TestTasks(t *testing.T) {
	for file, least := range map[string]int{"tasks_dev.txt": 34, "tasks_held.txt": 34} {
		t.Run(file, func(t *testing.T) {
			right := 0
			all := lines(t, file)
			for _, line := range all {
				text := strings.TrimSpace(line[1:])
				found, err := newRules(t).Extract(t.Context(), conversation([]string{text, "好的。"}))
				if err != nil {
					t.Fatal(err)
				}
				var tasks []string
				for _, f := range found {
					if f.Category == digest.Task {
						tasks = append(tasks, f.Text)
					}
				}
				if (len(tasks) == 1) == (line[0] == '+') && len(tasks) < 2 {
					right++
				} else {
					t.Logf("%s: %q", line, tasks)
				}
			}
			share(t, file, right, len(all), least)
		})
	}
}
