// Package model extracts with a text model: it implements decide.Extractor and decide.Gate over an llm.Model.
//
// A prompt is the operator's template with the transcript in place of {conversation} (prompt.go), followed by fixed rules that no
// template can leave out: the transcript is data, the language to write in, and the form of the answer. The transcript has one line for
// each message, its content a JSON string, between marks that the content cannot forge (transcript.go).
//
// Answers may have fences, prose and trailing commas (answer.go). They are then checked: statements that cite messages that do not
// exist, have no source in the speaker's words, or are in another language than the dialogue are not stored (statements.go,
// language.go). A request whose answer cannot be used is repeated once, with the problem added (ask.go). Correct statements of the
// second answer are kept, and the consideration's reason names the others; an answer without any correct one fails the consideration. It
// never counts as "nothing to remember".
//
// Requests to remember are found without the model and kept in any case (explicit.go).
package model
