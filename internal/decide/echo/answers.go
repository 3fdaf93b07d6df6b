package echo

import (
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/memsidecar/memsidecar/internal/lang"
	"github.com/memsidecar/memsidecar/internal/lang/lazyregexp"
)

// Reply is what a person's message is worth as an answer.
type Reply int

// The replies.
const (
	Words       Reply = iota // it says something itself
	Acknowledge              // "嗯", "ok", "thanks": it was heard
	Affirm                   // "对", "yes, right": so it is
)

const maxReply = 40 // characters

var (
	replyZH = lazyregexp.New(`^(嗯+|恩+|哦+|噢+|喔+|啊+|呃|好(的|啊|呀|吧|滴|哒|嘞)?|行(吧)?|可以(的)?|对(的|啊|呀|对)*|是(的|啊|呀|是)*|没错|沒錯|知道了?|明白了?|了解|收到|谢谢(你|` +
		`您|啦)?|謝謝|多谢|哈+|嘿+|确实|当然|正确|真的?|有道理|说得对|你说得对|記得|记得|你好|您好|早(上好|安)?|(上午|中午|下午|晚上)好|晚安|再见|拜拜|在吗|hi|hello|ok|okay|yes|yeah|👌|👍|[，,。.、` +
		`！!~～…？?\s])+$`)
	yesZH   = lazyregexp.New(`对|是|没错|沒錯|确实|正确|yes|yeah`)
	wordEN  = lazyregexp.New(`[\p{L}']+|\d+`)
	replyEN = lang.Set(`yes yeah yep yup yea right correct exactly sure ok okay k fine great good nice cool thanks thank thx you that's
		thats that is it true indeed absolutely
		of course i do am see got hmm hm uh huh mhm mm haha hahaha lol oh wow ah please sounds perfect very much so totally definitely
		agreed alright all well a lot i'm have know certainly
		hi hello hey bye goodbye morning afternoon evening night welcome`)
	yesEN = lang.Set(`yes yeah yep yup yea right correct exactly true indeed absolutely definitely totally agreed certainly`)
	asks  = lazyregexp.New(`[?？]\s*$|(吗|嘛|对吧|是吧|好吧|没错吧|行吗|可以吗)[。.！!~～\s]*$`)
)

// ReplyOf tells a mere "yes", and a mere "I heard you", from what says something itself.
func ReplyOf(text string) Reply {
	text = strings.TrimSpace(strings.ToLower(strings.ReplaceAll(norm.NFKC.String(text), "’", "'")))
	if utf8.RuneCountInString(text) > maxReply {
		return Words
	}
	if replyZH.MatchString(text) {
		if yesZH.MatchString(text) {
			return Affirm
		}
		return Acknowledge
	}
	found := wordEN.FindAllString(text, -1)
	if len(found) == 0 {
		return Acknowledge // nothing, or an emoji
	}
	reply := Acknowledge
	for _, w := range found {
		if !replyEN[w] {
			return Words
		}
		if yesEN[w] {
			reply = Affirm
		}
	}
	return reply
}

// Sentences are a text's sentences.
func Sentences(text string) []string { return sentence.FindAllString(text, -1) }

// Asks reports whether a message ends in a question, or in what wants a yes.
func Asks(text string) bool { return asks.MatchString(strings.TrimSpace(text)) }
