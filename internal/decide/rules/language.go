package rules

import "github.com/memsidecar/memsidecar/internal/lang/lexical"

// The languages that the rules tell apart. Texts in any other are unknown.
const (
	chinese  = "zh"
	english  = "en"
	japanese = "ja"
	korean   = "ko"
	unknown  = lexical.Undetermined
)

// languageOf is the language of a text, or the fallback for a text without any sign of a language.
func languageOf(p piece, fallback string) string {
	if fallback == "" {
		fallback = lexical.Language(p.raw)
	}
	switch language := lexical.LanguageOr(p.raw, fallback); language {
	case chinese, english, japanese, korean:
		return language
	}
	return unknown
}
