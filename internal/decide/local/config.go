package local

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/memsidecar/memsidecar/internal/memory"
)

// Config is what an operator may change. The zero value is the default configuration.
type Config struct {
	// Threshold is how sure the classifier must be of a sentence to keep it, 0.05 to 0.95; 0 is DefaultLeast.
	Threshold float64 `koanf:"threshold"`
	// MaxStatements is how many statements one dialogue may yield about one speaker, 1 to 1000; 0 is DefaultMaxStatements.
	MaxStatements int `koanf:"max_statements"`
	// MaxStatementRunes is the longest statement, in characters, 50 to memory.MaxTextRunes; 0 is DefaultMaxRunes.
	MaxStatementRunes int `koanf:"max_statement_runes"`
	// Signals are phrases by which sentences are kept or left out.
	Signals []ConfiguredSignal `koanf:"signals"`
}

// ConfiguredSignal is a Signal in a configuration.
type ConfiguredSignal struct {
	Name string `koanf:"name"`
	// Weight is how many points the signal adds, once a sentence, -100 to 100 but not 0.
	Weight int `koanf:"weight"`
	// Off switched a signal off that was built in. Those are replaced by a classifier.
	Off  bool        `koanf:"off"`
	Kind memory.Kind `koanf:"kind"` // of a sentence that is kept for this signal; empty: as the classifier says
	// Phrases by language, which is a remark for people: all are looked for in every text, in upper and lower case.
	Phrases map[string][]string `koanf:"phrases"`
}

// Validate names every field that is wrong, or returns nil.
func (c Config) Validate() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	between := func(field string, v, least, most int) {
		if v != 0 && (v < least || v > most) {
			bad("%s is %d: use %d to %d, or 0 for the default", field, v, least, most)
		}
	}
	if t := c.Threshold; t != 0 && !(t >= .05 && t <= .95) {
		bad("threshold is %g: use 0.05 to 0.95, or 0 for the default; the former points 1 to 5 are about 0.3, 0.5, 0.6, 0.75 and 0.9", t)
	}
	between("max_statements", c.MaxStatements, 1, 1000)
	between("max_statement_runes", c.MaxStatementRunes, 50, memory.MaxTextRunes)
	seen := map[string]bool{}
	for i, s := range c.Signals {
		field := fmt.Sprintf("signals[%d]", i)
		switch {
		case strings.TrimSpace(s.Name) == "":
			bad("%s.name is required", field)
		case seen[s.Name]:
			bad("%s.name %q is listed twice", field, s.Name)
		}
		seen[s.Name] = true
		s.check(field, bad)
	}
	return errors.Join(errs...)
}

// maxPhraseRunes keeps phrases phrases: the time to look for them grows with their length.
const maxPhraseRunes = 100

func (s ConfiguredSignal) check(field string, bad func(format string, args ...any)) {
	if len(s.Phrases) == 0 || s.Off {
		bad("%s.phrases are missing: give some; the signals that were built in are replaced by a classifier and can no longer be changed or "+
			"switched off, so remove %q if it is one of them", field, s.Name)
		return
	}
	if s.Weight == 0 || s.Weight < -100 || s.Weight > 100 {
		bad("%s.weight is %d: use -100 to 100, but not 0", field, s.Weight)
	}
	if s.Kind != "" && !s.Kind.Valid() {
		bad("%s.kind %q is not a kind of memory", field, s.Kind)
	}
	for _, language := range slices.Sorted(maps.Keys(s.Phrases)) {
		for j, p := range s.Phrases[language] {
			at := fmt.Sprintf("%s.phrases.%s[%d]", field, language, j)
			switch {
			case !utf8.ValidString(p):
				bad("%s is not valid UTF-8", at)
			case utf8.RuneCountInString(p) > maxPhraseRunes:
				bad("%s is longer than %d characters", at, maxPhraseRunes)
			case !strings.ContainsFunc(p, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }):
				bad("%s %q has no letter or digit", at, p)
			case strings.Contains(p, "~"):
				bad("%s %q has a ~: write each form of the verb as a phrase", at, p)
			}
		}
	}
}

// Options returns the options that the configuration says.
func (c Config) Options() Options {
	o := Options{MaxStatements: c.MaxStatements, MaxRunes: c.MaxStatementRunes}
	if c.Threshold != 0 {
		o.Least = c.Threshold
	}
	for _, s := range c.Signals {
		signal := Signal{Weight: min(max(s.Weight, -20), 20), Kind: s.Kind}
		for _, phrases := range s.Phrases {
			for _, p := range phrases {
				signal.Phrases = append(signal.Phrases, strings.ToLower(strings.TrimSpace(p)))
			}
		}
		slices.Sort(signal.Phrases)
		o.Signals = append(o.Signals, signal)
	}
	return o
}
