package topics

import (
	_ "embed"

	"github.com/memsidecar/memsidecar/internal/lang"
	"github.com/memsidecar/memsidecar/internal/lang/lazyregexp"
)

// maxStopChars is the length of the longest Chinese stop word, in characters.
const maxStopChars = 4

var (
	//go:embed stop_zh.txt
	stopTextZH string
	//go:embed stop_en.txt
	stopTextEN string

	stopHan, stopWords = lang.Set(lang.Lines(stopTextZH)...), lang.Set(lang.Lines(stopTextEN)...)
)

// interjections are characters that mean laughter or a sigh when two or more follow each other: 哈哈, 呜呜, 嘿嘿嘿.
const interjections = "哈呵嘿嘻呜嗚啊哦噢嗯哇唉诶欸嗷喔"

// strongFunction are function characters that seldom begin or end a word of three characters or more; see edgeShare.
const strongFunction = "为為以要就都也还還很太又再才挺被给給让讓跟与與但却卻没沒不在是有把和吧了着著"

// neverLast are the characters of strongFunction that never end a word.
const neverLast = "不很太还還又再也让讓跟但却卻挺"

// joining are function characters that join two words: 猫和狗.
const joining = "和与與跟及或而并並但"

// localizers may be the end of a topic (车上) or follow one without being part of it: 地铁里, 下雨时, 医生说.
const localizers = "说說时時前后後里裡上下中得"

// lightVerbs are verbs in front of a topic, and no part of it: 去杭州, 吃火锅.
const lightVerbs = "去吃喝买買"

// laughter recognises haha, hehehe, hhhh, emmm, lolol, 233333 and the like.
var laughter = lazyregexp.New(`^(?:(?:a*h+a+){2,}h*|(?:h+[eio]+){2,}h*|h{2,}m*|h+m{2,}|e+m{2,}|u+m{2,}|l+(?:o+l+)+|a+w+|w{3,}|23{2,})$`)
