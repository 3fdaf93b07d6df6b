package digest

import (
	"strings"

	"github.com/memsidecar/memsidecar/internal/lang/lazyregexp"
)

var (
	likesZH = lazyregexp.New(`^用户(?:也|还|很|最|非常|特别|比较|更|一直|平时|现在)*(不喜欢|不太喜欢|喜欢|喜爱|热爱|爱吃|爱喝|爱看|爱听|爱|讨厌|偏好|偏爱|习惯|希望|想要|不吃|不喝|不爱)(.+?)[。.！!]*$`)
	likesEN = lazyregexp.New(`(?i)^The user (?:really |also |still |always )*` +
		`(likes|loves|prefers|enjoys|hates|dislikes|wants|(?:does not|doesn't|does n't) (?:like|eat|drink|want|enjoy)) (.+?)[.!]*$`)
)

// KeyValue splits a preference that is worded as a statement into its subject and its value.
func KeyValue(statement, language string) (key, value string) {
	if m := likesZH.FindStringSubmatch(statement); m != nil {
		return m[1], strings.TrimSpace(m[2])
	}
	if m := likesEN.FindStringSubmatch(statement); m != nil {
		return strings.ToLower(m[1]), strings.TrimSpace(m[2])
	}
	if language == "zh" {
		return "偏好", statement
	}
	return "preference", statement
}
