//go:build !race

package rules

import (
	"context"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// TestLongInput measures time, so it is left out under the race detector, which slows some of this far more than the rest.
func TestLongInput(t *testing.T) {
	r := newRules(t, Config{})
	for name, text := range map[string]string{
		"one word":       strings.Repeat("a", 64<<10),
		"one sentence":   strings.Repeat("我喜欢吃辣和", 64<<10/18),
		"commas":         strings.Repeat("I like it, ", 64<<10/11),
		"many":           strings.Repeat("我住在上海。I like tea. ", 256<<10/30),
		"quotes":         strings.Repeat("“", 64<<10/3),
		"straight":       strings.Repeat("\"", 64<<10),
		"requests":       strings.Repeat("记住", 64<<10/6),
		"requests apart": strings.Repeat("remember, ", 64<<10/10),
		"and I":          strings.Repeat("my a and i ", 64<<10/11),
		"spaces":         strings.Repeat("好 ", 64<<10/4),
		"fillers":        strings.Repeat("其实，", 64<<10/9),
		"lines":          strings.Repeat("\n", 64<<10),
		"times":          strings.Repeat("明天", 64<<10/6),
		"dots":           strings.Repeat("a.", 32<<10),
		"neutral":        strings.Repeat("我喜欢这个问题", 64<<10/21),
		"not to forget":  strings.Repeat("别记错", 64<<10/9),
		"hearsay":        strings.Repeat("he says ", 64<<10/8),
		"remember that":  strings.Repeat("I like tea. Remember that. ", 64<<10/27),
		"Japanese":       strings.Repeat("覚えて。", 64<<10/12),
		"forget":         strings.Repeat("forget that. ", 64<<10/13),
		"titles":         strings.Repeat(" 'A b", 64<<10/5),
		"wishes":         strings.Repeat("I want to talk to you and ", 64<<10/26),
		"announcements":  strings.Repeat("我有问题", 64<<10/12),
		"records":        strings.Repeat("add it to the list ", 64<<10/19),
		"commands":       strings.Repeat("translate\n", 64<<10/10),
	} {
		// Linear: four times as much text takes some four times as long, not sixteen. A machine that is busy with something else makes
		// either longer, so both are measured again until they are in proportion once.
		took := func(text string) time.Duration {
			start := time.Now()
			if _, err := r.Decide(context.Background(), talk(text)); err != nil {
				t.Fatal(err)
			}
			return time.Since(start)
		}
		var quarter, whole time.Duration
		for tries := 0; tries == 0 || tries < 10 && whole > 9*quarter+time.Second; tries++ {
			quarter, whole = took(text[:len(text)/4]), took(text)
		}
		if whole > 9*quarter+time.Second {
			t.Errorf("%s: took %s, a quarter of it %s", name, whole, quarter)
		}
		_, s := consider(t, r, talk(text))
		for _, x := range s {
			if n := utf8.RuneCountInString(x.Text); n > DefaultMaxStatementRunes {
				t.Errorf("%s: a statement of %d characters", name, n)
			}
		}
	}
	long := "记住" + strings.Repeat("我的密码很长很长", 200)
	if v, s := consider(t, r, talk(long)); !v.Explicit || len(s) != 1 || utf8.RuneCountInString(s[0].Text) > DefaultMaxStatementRunes {
		t.Errorf("a long explicit request gave %+v", s)
	}
}
