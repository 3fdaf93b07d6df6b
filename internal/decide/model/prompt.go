package model

import (
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/memsidecar/memsidecar/internal/lang/lazyregexp"
	"github.com/memsidecar/memsidecar/internal/llm/answer"
	"github.com/memsidecar/memsidecar/internal/memory"
)

// The prompts are in English and demand the dialogue's language of the answer, rather than being one a language: instructions to models
// are tried most in English, one text can be kept good where thirty cannot, and a dialogue of two languages has no prompt language of
// its own. {language} names the language, because a language that is not named makes models slip into English.
//
// A prompt begins with what is the same in every call, so that providers can cache it, and ends with the record.

// DefaultDecisionPrompt asks whether a dialogue holds anything worth remembering.
//
//go:embed prompts/decision.txt
var DefaultDecisionPrompt string

// DefaultSummaryPrompt says what is worth remembering. The form of the answer stands before it, see extractionPrompt.
//
//go:embed prompts/summary.txt
var DefaultSummaryPrompt string

// The placeholders of a template.
const (
	placeConversation = "{conversation}" // required: the transcript
	placeDate         = "{date}"         // the local date of the newest message, with its weekday
	placeLanguage     = "{language}"     // the language that the speaker writes, by its English name
	placeSpeaker      = "{speaker}"      // the considered speaker's id, in quotation marks; of a group that is read at once, all of them
)

var (
	placeholders = []string{placeConversation, placeDate, placeLanguage, placeSpeaker}
	// placeholder is a word in braces. JSON in a template has quotation marks and colons and is none.
	placeholder = lazyregexp.New(`\{+\s*[\p{L}_][\p{L}\p{N}_.-]*\s*\}+`)
)

// ValidatePrompt says what is wrong with a template, or "". A template needs {conversation} and may use {date}, {language}
// and {speaker}; any other word in braces is taken for a misspelt placeholder. The form of the answer and the rules
// about the transcript need not be in it: they are always added. The empty template stands for the default.
func ValidatePrompt(text string) string {
	switch {
	case text == "":
		return ""
	case !utf8.ValidString(text):
		return "is not valid UTF-8: write it in UTF-8"
	}
	for _, found := range placeholder.FindAllString(text, -1) {
		if slices.Contains(placeholders, found) {
			continue
		}
		for _, known := range placeholders {
			if strings.EqualFold("{"+strings.Trim(found, "{} \t\r\n")+"}", known) {
				return fmt.Sprintf("has %s: write %s", found, known)
			}
		}
		return fmt.Sprintf("has the unknown placeholder %s: use %s", found, strings.Join(placeholders, ", "))
	}
	if !strings.Contains(text, placeConversation) {
		return "lacks the placeholder " + placeConversation + ", in whose place the dialogue is put"
	}
	return ""
}

// fill puts the page in the template's places. What is put in is not searched for placeholders again.
func fill(template string, p page) string {
	return strings.NewReplacer(
		placeConversation, p.text, placeDate, p.date, placeLanguage, languageName(p.language), placeSpeaker, p.names(),
	).Replace(template)
}

// instructions is what every extraction begins with. It does not depend on the dialogue.
//
//go:embed prompts/instructions.txt
var instructions string

// recordRulesForm says what the record is. It stands after it, where what a message pleads is already read.
//
//go:embed prompts/record.txt
var recordRulesForm string

// togetherRules says what changes when a record is read for several users. It stands at the end, because most records are of one.
//
//go:embed prompts/together.txt
var togetherRules string

func recordRules(p page) string {
	rules := fmt.Sprintf(recordRulesForm, p.mark, p.names(), p.date, languageName(p.language))
	if len(p.users) > 1 {
		rules = strings.TrimRight(rules, "\n") + "\n\n" + togetherRules
	}
	return rules
}

// names are the users' ids in quotation marks.
func (p *page) names() string {
	quoted := make([]string, len(p.users))
	for i, user := range p.users {
		quoted[i] = answer.Quoted(user)
	}
	return strings.Join(quoted, ", ")
}

// version identifies what is constant in the prompts made of a template: 12 hexadecimal digits of its SHA-256.
func version(constant, template string) string {
	sum := sha256.Sum256([]byte(constant + "\x00" + template + "\x00" + recordRulesForm))
	return hex.EncodeToString(sum[:6])
}

// gatePrompt is the whole prompt of a decision.
func gatePrompt(template string, p page) string {
	return fill(template, p) + "\n\n" + recordRules(p) + fmt.Sprintf(gateForm, languageName(p.language))
}

// gateForm says what a decision is about, and its form.
const gateForm = `Only the new messages are to be judged. Write "reason" in %s.

Answer with one JSON object and nothing else:
{"should_remember": true or false, "reason": "why, in one short sentence"}`

// extractionPrompt is the whole prompt of an extraction: the instructions, the template with the record in it, and what the record is.
func extractionPrompt(template string, p page) string {
	return constantPart + fill(template, p) + "\n\n" + recordRules(p)
}

var constantPart = strings.ReplaceAll(instructions, "KINDS", strings.Join(kindList(), ", "))

func kindList() []string {
	var names []string
	for _, k := range memory.Kinds() {
		names = append(names, string(k))
	}
	return names
}

// gateSchema and opsSchema use nothing but type, properties, required, enum, items and additionalProperties, and require every
// property: that is what every provider's structured output can do.
func gateSchema() map[string]any {
	return objectSchema(map[string]any{
		"should_remember": map[string]any{"type": "boolean"},
		"reason":          map[string]any{"type": "string"},
	}, "should_remember", "reason")
}

// opsSchema is the form of the answer. With several users each op names its own.
func opsSchema(users []string) map[string]any {
	text := map[string]any{"type": "string"}
	texts := map[string]any{"type": "array", "items": text}
	op := objectSchema(map[string]any{
		"op":         oneOf("add", "update", "same", "forget", "private"),
		"ids":        texts,
		"text":       text,
		"kind":       oneOf(kindList()...),
		"importance": map[string]any{"type": "number"},
		"standing":   text,
		"about":      text,
		"holds":      oneOf("now", "past", "future", "wish", "unsure", "no"),
		"until":      text,
		"asked":      map[string]any{"type": "boolean"},
		"from":       texts,
	}, "op", "ids", "text", "kind", "importance", "standing", "about", "holds", "until", "asked", "from")
	if len(users) > 1 {
		properties, _ := op["properties"].(map[string]any) // objectSchema made it
		required, _ := op["required"].([]any)
		properties["user"], op["required"] = oneOf(users...), append(required, "user")
	}
	return objectSchema(map[string]any{"ops": map[string]any{"type": "array", "items": op}}, "ops")
}

func oneOf(names ...string) map[string]any {
	values := make([]any, len(names))
	for i, name := range names {
		values[i] = name
	}
	return map[string]any{"type": "string", "enum": values}
}

func objectSchema(properties map[string]any, required ...string) map[string]any {
	names := make([]any, len(required))
	for i, r := range required {
		names[i] = r
	}
	return map[string]any{"type": "object", "properties": properties, "required": names, "additionalProperties": false}
}
