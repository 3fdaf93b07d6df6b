package rules

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/memsidecar/memsidecar/internal/memory"
)

// Defaults of Config.
const (
	DefaultThreshold         = 2
	DefaultMaxStatements     = 20
	DefaultMaxStatementRunes = 500
)

// Config is what an operator may change. The zero value is the default configuration.
type Config struct {
	// Threshold is the score, in points, from which something is remembered: 1 to 100; 0 means DefaultThreshold.
	Threshold int `koanf:"threshold"`
	// MaxStatements is how many statements one dialogue may yield about one speaker, 1 to 1000; 0 means
	// DefaultMaxStatements. The strongest are kept, in the order in which they were said.
	MaxStatements int `koanf:"max_statements"`
	// MaxStatementRunes is the longest statement, in characters, 50 to memory.MaxTextRunes; 0 means
	// DefaultMaxStatementRunes.
	MaxStatementRunes int `koanf:"max_statement_runes"`
	// Signals change or extend the default signals, by name; others keep their defaults.
	Signals []Signal `koanf:"signals"`
}

// Signal is one reason to remember something.
type Signal struct {
	// Name identifies the signal. One of the Signal constants changes that signal, any other name adds one.
	Name string `koanf:"name"`
	// Weight is how many points the signal adds, once a statement, -100 to 100; 0 keeps the default's weight.
	Weight int `koanf:"weight"`
	// Off removes the signal.
	Off bool `koanf:"off"`
	// Kind is what a memory is about when this signal is its strongest; empty keeps the default's, or fact.
	Kind memory.Kind `koanf:"kind"`
	// Phrases make the signal fire, by language ("zh", "en", …); all are looked for in every text, because people mix
	// languages. A language that is missing or empty keeps the default's phrases. A phrase with a Chinese, Japanese or
	// Korean character matches anywhere, any other at word boundaries; case does not matter, nor does it matter whether
	// Chinese is simplified or traditional, nor whether "don't" is written "do not". A word followed by "~" stands for
	// all forms of a verb: "work~ at" is "work at", "works at", "worked at" and "working at".
	Phrases map[string][]string `koanf:"phrases"`
}

// The default signals.
const (
	SignalExplicit        = "explicit"         // the speaker asks for it to be remembered
	SignalConfiguration   = "configuration"    // keys, ports, settings
	SignalProblemSolution = "problem_solution" // a technical problem or its solution
	SignalPreference      = "preference"       // likes and dislikes
	SignalAboutUser       = "about_user"       // the speaker is its subject or owner; found by grammar
	SignalDetail          = "detail"           // a number, a date, a title, a name; found by shape
	SignalIdentity        = "identity"         // name, birthday, age
	SignalPlace           = "place"            // where the speaker lives, comes from, moved to
	SignalOccupation      = "occupation"       // job, studies, school, skills
	SignalRelation        = "relation"         // family, friends, partners, pets
	SignalAppointment     = "appointment"      // an arranged event; counts only beside a time
	SignalPlan            = "plan"             // intentions and goals
	SignalHabit           = "habit"            // what the speaker does regularly
	SignalHealth          = "health"           // illness, allergies, diet
	SignalDecision        = "decision"         // what the speaker decided
	SignalExperience      = "experience"       // what the speaker saw, read, visited, did
	SignalTask            = "task"             // work under way
	SignalLastingProblem  = "lasting_problem"  // a trouble that stays
	SignalTreatment       = "treatment"        // how the bot is to treat the speaker from now on
	SignalPossession      = "possession"       // what the speaker owns or uses
	SignalEveryday        = "everyday"         // an everyday outing or meal; counts against, where nothing sets it apart
	SignalRecord          = "record"           // what the bot is to keep in a list or plan; found by grammar
)

// DefaultConfig is the configuration with every default written out.
func DefaultConfig() Config {
	return Config{
		Threshold:         DefaultThreshold,
		MaxStatements:     DefaultMaxStatements,
		MaxStatementRunes: DefaultMaxStatementRunes,
		Signals:           defaultSignals(),
	}
}

// defaultSignals are ordered by significance: of two signals of equal weight the first one determines the kind.
func defaultSignals() []Signal {
	type row struct {
		name   string
		weight int
		kind   memory.Kind
	}
	rows := []row{
		{SignalExplicit, 3, memory.KindFact},
		{SignalTreatment, 2, memory.KindRequest},
		{SignalAppointment, 2, memory.KindAppointment},
		{SignalHealth, 2, memory.KindFact},
		{SignalIdentity, 2, memory.KindFact},
		{SignalConfiguration, 2, memory.KindFact},
		{SignalProblemSolution, 2, memory.KindProblem},
		{SignalRecord, 2, memory.KindTask},
		{SignalDecision, 1, memory.KindDecision},
		{SignalPlan, 1, memory.KindPlan},
		{SignalTask, 1, memory.KindTask},
		{SignalPreference, 1, memory.KindPreference},
		{SignalLastingProblem, 1, memory.KindProblem},
		{SignalRelation, 1, memory.KindRelationship},
		{SignalPlace, 1, memory.KindFact},
		{SignalOccupation, 1, memory.KindFact},
		{SignalExperience, 1, memory.KindExperience},
		{SignalHabit, 1, memory.KindPreference},
		{SignalPossession, 1, memory.KindFact},
		{SignalDetail, 1, memory.KindFact},
		{SignalEveryday, -2, memory.KindExperience},
		{SignalAboutUser, 1, memory.KindFact},
	}
	out := make([]Signal, len(rows))
	for i, r := range rows {
		out[i] = Signal{Name: r.name, Weight: r.weight, Kind: r.kind, Phrases: map[string][]string{}}
		if zh := strings.Fields(lexiconZH[r.name]); len(zh) > 0 {
			out[i].Phrases["zh"] = zh
		}
		if en := lines(lexiconEN[r.name]); len(en) > 0 {
			out[i].Phrases["en"] = en
		}
		if other := lines(lexiconOther[r.name]); len(other) > 0 {
			out[i].Phrases["other"] = other
		}
	}
	return out
}

// lines splits a list whose entries may hold spaces: one entry between commas or line ends.
func lines(s string) []string {
	var out []string
	for _, f := range strings.FieldsFunc(s, func(r rune) bool { return r == ',' || r == '\n' }) {
		if f = strings.TrimSpace(f); f != "" {
			out = append(out, f)
		}
	}
	return out
}

// maxPhraseRunes keeps phrases phrases: matching costs grow with their length.
const maxPhraseRunes = 100

// Validate names every field that is wrong, or returns nil.
func (c Config) Validate() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	between := func(field string, v, lo, hi int) {
		if v != 0 && (v < lo || v > hi) {
			bad("%s is %d: use %d to %d, or 0 for the default", field, v, lo, hi)
		}
	}
	between("threshold", c.Threshold, 1, 100)
	between("max_statements", c.MaxStatements, 1, 1000)
	between("max_statement_runes", c.MaxStatementRunes, 50, memory.MaxTextRunes)
	known := defaultNames()
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
		s.check(field, known[s.Name] || s.Off, bad)
	}
	return errors.Join(errs...)
}

func defaultNames() map[string]bool {
	known := map[string]bool{}
	for _, s := range defaultSignals() {
		known[s.Name] = true
	}
	return known
}

// check names what is wrong with a signal; known is true when a default fills in what it leaves out.
func (s Signal) check(field string, known bool, bad func(format string, args ...any)) {
	if s.Weight < -100 || s.Weight > 100 {
		bad("%s.weight is %d: use -100 to 100", field, s.Weight)
	}
	if s.Kind != "" && !s.Kind.Valid() {
		bad("%s.kind %q is not a kind of memory", field, s.Kind)
	}
	if !known && s.Weight == 0 {
		bad("%s.weight is required for the new signal %q", field, s.Name)
	}
	if !known && len(s.Phrases) == 0 {
		bad("%s.phrases are required for the new signal %q", field, s.Name)
	}
	for _, lang := range slices.Sorted(maps.Keys(s.Phrases)) {
		for j, p := range s.Phrases[lang] {
			at := fmt.Sprintf("%s.phrases.%s[%d]", field, lang, j)
			switch {
			case !utf8.ValidString(p):
				bad("%s is not valid UTF-8", at)
			case utf8.RuneCountInString(p) > maxPhraseRunes:
				bad("%s is longer than %d characters", at, maxPhraseRunes)
			case len(phraseForms(p)) == 0:
				bad("%s %q has no letter or digit, or more than two words with ~", at, p)
			}
		}
	}
}

// resolved fills in the defaults; c is valid.
func (c Config) resolved() Config {
	out := Config{
		Threshold:         cmp.Or(c.Threshold, DefaultThreshold),
		MaxStatements:     cmp.Or(c.MaxStatements, DefaultMaxStatements),
		MaxStatementRunes: cmp.Or(c.MaxStatementRunes, DefaultMaxStatementRunes),
	}
	changes := map[string]Signal{}
	for _, s := range c.Signals {
		changes[s.Name] = s
	}
	for _, s := range defaultSignals() {
		change := changes[s.Name]
		if change.Off {
			continue
		}
		s.Weight, s.Kind = cmp.Or(change.Weight, s.Weight), cmp.Or(change.Kind, s.Kind)
		for lang, phrases := range change.Phrases {
			if len(phrases) > 0 {
				s.Phrases[lang] = phrases
			}
		}
		out.Signals = append(out.Signals, s)
	}
	known := defaultNames()
	for _, s := range c.Signals {
		if !known[s.Name] && !s.Off {
			s.Kind = cmp.Or(s.Kind, memory.KindFact)
			out.Signals = append(out.Signals, s)
		}
	}
	return out
}
