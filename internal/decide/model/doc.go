// Package model decides and summarises with a text model: it implements decide.Decider and decide.Summarizer over an
// llm.Model.
//
// A prompt is the operator's template with the transcript in the place of {conversation} (prompt.go), followed by fixed
// rules that no template can leave out: that the transcript is data, in which language to write, and the form of the
// answer. The transcript is one line a message, its content a JSON string, between marks that the content cannot forge
// (transcript.go).
//
// A model's answer is taken in spite of fences, prose and trailing commas (answer.go) and then checked: what cites
// messages that do not exist, rests on nothing that the speaker said, or is in another language than the dialogue, is not
// stored (statements.go, language.go). An answer that cannot be used is asked for once more, with what is wrong with it
// (ask.go). Of the second one the statements that are right are kept, and the consideration's reason names the others; one
// without any fails the consideration. It is never taken for "nothing to remember".
//
// What the speaker asked in so many words to have remembered is found without the model and is kept whatever the model
// says (explicit.go).
package model
