// Package rules decides and summarises without any model: it implements decide.Decider and decide.Summarizer with word
// lists and a little grammar for Chinese and English, so that the sidecar remembers something sensible with no key and no
// download.
//
// A message is cut into sentences and, where clauses stand on their own, into clauses (sentences.go). Each clause is
// classed: statement, question, command, small talk and so on (class.go); what people say around the matter, such as promises
// to follow advice, has constructions of its own (aside.go). Neighbouring statements form units, and a unit's score is the
// sum of the weights of the signals found in it (score.go), where the words have a signal's sense (sense.go); what reaches the
// threshold is told in the third person (rewrite_zh.go, rewrite_en.go) or, where that would be doubtful, quoted. Requests to
// remember and requests not to are found first (explicit.go), then entries of lists that the bot keeps (record.go), last what the
// speaker confirms (confirm.go) or answers about their own work (record.go).
//
// The scoring is the importance scoring of the nanobot digest (explicit request +3, configuration +2, problem and solution
// +2, preference +1, threshold 2), extended to what people say about themselves.
//
// Everything runs in time linear in the length of the dialogue.
package rules
