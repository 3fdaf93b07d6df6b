// Package rules decides and summarizes without a model: it implements decide.Decider and decide.Summarizer with word lists and a small
// grammar of Chinese and English, so that memsidecar works without a key or a download.
//
// A message is divided into sentences and independent clauses (sentences.go). Each clause has a class: statement, question, command,
// small talk and so on (class.go), or an aside, such as a promise to follow advice (aside.go). Neighbouring statements form units. A
// unit's score is the sum of the weights of its signals (score.go), where words have the signal's sense (sense.go). Units that reach the
// threshold are rewritten in the third person (rewrite_zh.go, rewrite_en.go) or, in doubt, quoted. Requests to remember and not to
// remember are found first (explicit.go), then entries of lists that the bot keeps (record.go), then what the speaker confirms
// (confirm.go) or answers about their own work (record.go).
//
// The scoring is that of the nanobot digest (explicit request +3, configuration +2, problem and solution +2, preference +1, threshold
// 2), extended to statements about the speaker.
//
// Everything runs in time linear in the length of the dialogue.
package rules
