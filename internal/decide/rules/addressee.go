package rules

import (
	"slices"
	"strings"

	"github.com/memsidecar/memsidecar/internal/lang/lazyregexp"
	"github.com/memsidecar/memsidecar/internal/memory"
)

var (
	// saidTo is the addressee of a message in the form of chat platforms: @name, <@1234>, [CQ:at,qq=1234].
	saidTo = lazyregexp.New(`^\s*(@[^\s@,，:：、]{1,64}[\s,，:：、]+|<@[!&]?[0-9A-Za-z]+>[\s,，:：]*|\[CQ:at,[^\]]*\][\s,，:：]*)+`)
	// Said to all who are there.
	askedAllZH = lazyregexp.New(`大家|各位|你们|诸位|所有人|@全体`)
	askedAllEN = lazyregexp.New(`(?i)\b(everyone|everybody|you all|all of you|y'all|you guys|folks|you two|you both|both of you)\b|` +
		`@(all|here|everyone|channel)\b`)
)

// maxBetween is how many messages of others may stand between a question of the assistant and the answer to it.
const maxBetween = 5

// withoutAddress is a text without its addressee.
func withoutAddress(text string) string { return text[len(saidTo.FindString(text)):] }

// withoutName is a text without the name of its addressee, also without @: "小李，你住在北京，对吗？".
func withoutName(text, name string) string {
	text = withoutAddress(text)
	if rest, found := strings.CutPrefix(text, name); found && name != "" {
		if said := strings.TrimLeft(rest, " ,，:：、"); said != rest {
			return said
		}
	}
	return text
}

// speakers lists who spoke.
func speakers(d memory.Dialogue) (ids []string) {
	for i := range d.Messages {
		if m := &d.Messages[i]; m.Role == memory.RoleUser && !slices.Contains(ids, m.Speaker) {
			ids = append(ids, m.Speaker)
		}
	}
	return ids
}

// others reports whether a message is a line of another participant: "小李：我住在深圳" is either copied from 小李 or addressed to 小李, so "I" may
// be either of them.
func others(d memory.Dialogue, m memory.Message) bool {
	name, _, found := strings.Cut(strings.ReplaceAll(m.Content, "：", ":"), ":")
	name = strings.TrimSpace(name)
	return found && name != "" && !strings.EqualFold(name, m.Speaker) &&
		slices.ContainsFunc(speakers(d), func(id string) bool { return strings.EqualFold(id, name) })
}

// askedBefore is the message of the assistant that message i answers, or -1. What others say in between does not matter,
// unless it is a question. Among several people an answer counts only for who was asked.
func askedBefore(d memory.Dialogue, i int) int {
	asked := i - 1
	for ; asked >= 0 && d.Messages[asked].Role != memory.RoleAssistant; asked-- {
		m := &d.Messages[asked]
		if m.Role != memory.RoleUser || m.Speaker == d.Messages[i].Speaker || i-asked > maxBetween || strings.ContainsAny(m.Content, "?？吗") {
			return -1
		}
	}
	if asked < 0 || !asks(d, asked, d.Messages[i].Speaker) {
		return -1
	}
	return asked
}

// asks reports whether the assistant's message is for the speaker: by name, for all or, without a name, as an answer to the speaker's
// previous message.
func asks(d memory.Dialogue, asked int, speaker string) bool {
	ids := speakers(d)
	if len(ids) < 2 {
		return true
	}
	text := d.Messages[asked].Content
	named := ""
	for _, id := range ids {
		if names(text, id) && len(id) > len(named) { // "小王" is no name where "小王子" is
			named = id
		}
	}
	switch {
	case named != "":
		return names(text, speaker) && strings.Contains(named, speaker)
	case askedAllZH.MatchString(text), askedAllEN.MatchString(text):
		return true
	}
	for j := asked - 1; j >= 0; j-- {
		if d.Messages[j].Role == memory.RoleUser {
			return d.Messages[j].Speaker == speaker
		}
	}
	return false
}

// names reports whether a text has a name, in Latin letters as a word of its own.
func names(text, name string) bool {
	text, name = strings.ToLower(text), strings.ToLower(name)
	for at := 0; name != ""; {
		i := strings.Index(text[at:], name)
		if i < 0 {
			return false
		}
		start, end := at+i, at+i+len(name)
		if !letter(text[:start], name, true) && !letter(text[end:], name, false) {
			return true
		}
		at = end
	}
	return false
}

// letter reports whether a Latin word continues before or after a name.
func letter(text, name string, before bool) bool {
	if text == "" {
		return false
	}
	next, edge := text[0], name[len(name)-1]
	if before {
		next, edge = text[len(text)-1], name[0]
	}
	return latin(next) && latin(edge)
}

func latin(b byte) bool { return b >= 'a' && b <= 'z' || b >= '0' && b <= '9' || b == '_' }
