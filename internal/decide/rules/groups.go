package rules

import (
	"slices"
	"strings"

	"github.com/memsidecar/memsidecar/internal/lang/lazyregexp"
	"github.com/memsidecar/memsidecar/internal/memory"
)

// inGroup reports whether people talk to each other in a dialogue, so that "you" need not be the assistant and "we" may be
// anybody.
func inGroup(d memory.Dialogue) bool {
	if d.Scope.Channel.Kind == memory.ChannelGroup {
		return true
	}
	first := ""
	for _, m := range d.Messages {
		switch {
		case m.Role != memory.RoleUser:
		case first == "":
			first = m.Speaker
		case m.Speaker != first:
			return true
		}
	}
	return false
}

var (
	youAllZH = lazyregexp.New(`[你您]们|你俩|你两`)
	youZH    = lazyregexp.New(`[你您]`)
	// Who "we" are is said: "我和老婆……我们". 咱 reads as 我 in normalized text.
	weKnownZH = lazyregexp.New(`我(和|跟|与|同|老婆|老公|妻子|丈夫|太太|媳妇|对象|男友|女友|男朋友|女朋友|全家|一家|爸妈|父母)`)
	wholesZH  = strings.Fields(`公司 单位 学校 部门 团队 小组 班 宿舍 小区 老家 家 全家 一家`)

	weKnownEN = lazyregexp.New(`\b(and i|and me|me and|my (wife|husband|partner|boyfriend|girlfriend|fiance|fiancee|family|parents|` +
		`spouse))\b|\bour (house|home|kids?|children|son|daughter|baby|dog|cat|family|wedding|apartment|flat|parents|marriage|honeymoon|` +
		`landlord)\b`)
	aUserEN = lazyregexp.New(`\b(the|a|our|each|every|other) users?\b`)
)

// doubtfulZH reports whether a piece may speak of others where retelling would name the user or the assistant.
func doubtfulZH(p piece) bool {
	switch {
	case addressed.MatchString(p.norm), youAllZH.MatchString(p.norm), p.src.group && youZH.MatchString(p.norm):
		return true
	case strings.Contains(p.norm, "用户"): // those of a product, say: not to be told from the speaker
		return true
	case weKnownZH.MatchString(p.norm):
		return false
	}
	for i := 0; i < len(p.norm); {
		at := strings.Index(p.norm[i:], "我")
		if at < 0 {
			return false
		}
		i += at + len("我")
		together := strings.HasPrefix(p.raw[i-len("我"):], "咱")
		rest := p.norm[i:]
		plural := strings.HasPrefix(rest, "们")
		rest = strings.TrimPrefix(rest, "们")
		if together && plural || p.src.group && (together || plural) { // "咱们" is whoever is there
			if q := p.src.piece(p.end-len(rest), p.end); ownedZH.prefix(q) == 0 &&
				!slices.ContainsFunc(wholesZH, func(w string) bool { return strings.HasPrefix(rest, w) }) {
				return true
			}
		}
	}
	return false
}

// doubtfulEN is doubtfulZH for English. Any "you" is doubtful there.
func doubtfulEN(p piece) bool {
	if addressed.MatchString(p.norm) || aUserEN.MatchString(p.norm) {
		return true
	}
	if !p.src.group || weKnownEN.MatchString(p.norm) {
		return false
	}
	return slices.ContainsFunc(p.words, func(w word) bool {
		return set1(w.norm, "we", "us", "our", "ours", "ourselves") && p.raw[w.start:w.end] != "US"
	})
}

// addressed are the mentions of other people that a message in a group begins with.
var addressed = lazyregexp.New(`^(@[^\s,，:：@]+[\s,，:：]+)+`)

// requestTailZH begins a clause that asks the bot for something, or is broken off.
var requestTailZH = lazyregexp.New(`[，,](请[你您]?(为|给|帮|替|推荐|问|告诉|介绍|解释|列|写)|麻烦[你您]|(请)?[你您](能|可以|可不可以)|能不能|可以帮|[你您]$|帮我).*$`)

// dropRequestZH drops what a statement ends with that is a request to the bot.
func dropRequestZH(p piece) piece {
	if at := matchStart(requestTailZH, p.norm); at > 0 {
		return p.src.piece(p.start, p.start+at)
	}
	return p
}
