package redact

import (
	"strings"
	"testing"
	"time"
)

// TestTimeIsLinearInTheLength: The time is linear in a text's length: a text four times as long takes about four times as long, not
// sixteen. On a busy machine both are measured again until one measurement is linear.
func TestTimeIsLinearInTheLength(t *testing.T) {
	r := all(t)
	var keywords strings.Builder // of all rules, so that each one runs
	for _, rule := range rules().Rules {
		keywords.WriteString(rule.Keywords[0] + "=0123456789abcdef ")
	}
	for _, part := range []string{
		"I like tea. ", "1234 ", "4111 1111 ", "A1", "0", "０", "a@", "'", `"'`, `\"`, `\u0041`, "%41",
		"-----BEGIN PRIVATE KEY-----", "-----BEGIN PRIVATE KEY-----!", "eyJeyJeyJ.", "sk-", keywords.String(), "DE89 ", "DE89370400440532013",
		"=", "token=", `password="`, `password: ["a",`, "--password ", "<password>", `name="password" value=`, "Cookie: a=", "cookie: ",
		"://a:", "://a@", "aaaa:bbbb@",
		"密码", "密码是", "password ", "password is ", "password '", "is my password ", "log in with ", "code safe ",
		"my seed phrase is abandon ", "abandon ", "1. abandon ",
		"[redacted: ", "[redacted: token]",
	} {
		times := longBytes / len(part)
		took := func(times int) time.Duration {
			started := time.Now()
			r.Text(strings.Repeat(part, times))
			return time.Since(started)
		}
		var quarter, whole time.Duration
		for tries := 0; tries == 0 || tries < 10 && whole > 9*quarter+time.Second; tries++ {
			quarter, whole = took(times/4), took(times)
		}
		t.Logf("%-30.30q %s, a quarter of it %s", part, whole, quarter)
		if whole > 9*quarter+time.Second {
			t.Errorf("%.30q: %s, a quarter of it %s", part, whole, quarter)
		}
	}
}
