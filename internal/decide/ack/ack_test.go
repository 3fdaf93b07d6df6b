package ack_test

import (
	"testing"

	"github.com/memsidecar/memsidecar/internal/decide/ack"
)

func TestReadComparesWithTheConversation(t *testing.T) {
	for _, c := range []struct {
		message string
		before  []string
		want    ack.Report
	}{
		{"清理之后好了", []string{"可以清一下缓存"}, ack.Worked},
		{"清理之後好了，謝謝", []string{"可以清一下缓存"}, ack.Worked},
		{"That fixed it.", nil, ack.Worked},
		{"Thanks, the new cable did the trick!", []string{"Try a new cable."}, ack.Worked},
		{"Thanks, the new cable did the trick!", []string{"Restart the router."}, ack.None},
		{"重启没用", []string{"重启试试"}, ack.Failed},
		{"Still the same error", []string{"Restart it."}, ack.Failed},
		{"第一个没用，第二个好了", []string{"第一个办法是重启，第二个是重装"}, ack.Worked},
		{"不是这个，是因为网线断了", []string{"重启试试"}, ack.None},
		{"我女儿考上大学了", []string{"重启试试"}, ack.None},
		{"I moved to Oslo and everything works out.", nil, ack.None},
		{"好了吗？", []string{"重启试试"}, ack.None},
		{"谢谢", []string{"重启试试"}, ack.None},
		{"", nil, ack.None},
	} {
		if got := ack.Read(c.message, c.before...); got != c.want {
			t.Errorf("%q after %q is %d, want %d", c.message, c.before, got, c.want)
		}
	}
}
