package model

import (
	"errors"
	"fmt"

	"github.com/memsidecar/memsidecar/internal/llm"
)

// DefaultMaxChars is the longest transcript that is shown to a model unless Options say otherwise.
const DefaultMaxChars = 24_000

// minMaxChars leaves room for a few messages with their dates and names.
const minMaxChars = 1000

// Options describe a Gate or an Extractor. The zero value is the default.
type Options struct {
	// Prompt is the template; empty means DefaultDecisionPrompt or DefaultSummaryPrompt. See ValidatePrompt.
	Prompt string
	// Generation are the settings of the sampling.
	Generation llm.Generation
	// MaxChars is the longest transcript, in characters as the model sees it, at least 1000; 0 means DefaultMaxChars. Of
	// a longer one the oldest messages are left out.
	MaxChars int
}

// resolve fills in the defaults, or reports every field that is wrong.
func (o Options) resolve(prompt string) (Options, error) {
	if o.Prompt == "" {
		o.Prompt = prompt
	}
	if o.MaxChars == 0 {
		o.MaxChars = DefaultMaxChars
	}
	var errs []error
	if problem := ValidatePrompt(o.Prompt); problem != "" {
		errs = append(errs, fmt.Errorf("the prompt %s", problem))
	}
	if o.MaxChars < minMaxChars {
		errs = append(errs, fmt.Errorf("the longest transcript is %d characters: use at least %d, or 0 for the default", o.MaxChars, minMaxChars))
	}
	return o, errors.Join(errs...)
}
