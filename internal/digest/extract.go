package digest

import (
	"context"
	"strconv"
	"time"

	"github.com/memsidecar/memsidecar/internal/memory"
)

// Piece is a part of a session in which findings are looked for.
type Piece struct {
	Scope    memory.Scope // whose, and where
	Messages []Message    // oldest first, never empty
	Location *time.Location
	Language string // of most of it, as lexical.Language names it
	// Known are statements that considering has yielded of the same day.
	Known []string
}

// Name is what a message is called in provenance: by its id, or by its place in the session.
func (m *Message) Name() string {
	if m.ID != "" {
		return m.ID
	}
	return "@" + strconv.FormatInt(m.Position, 10)
}

// Extractor finds what a digest tells.
type Extractor interface {
	// Name is "rules", or the model as "provider/model".
	Name() string
	// Extract returns what it finds, in the order in which it was said, with statements in the third person and in the
	// language of the conversation. It is safe for concurrent use. An error means that it could not look, never that
	// there is nothing; one that may pass is a *memory.TransientError.
	Extract(ctx context.Context, p Piece) ([]Finding, error)
}

// Scorer rates the importance of a text by the signals in it.
type Scorer interface {
	// Score returns the points of a text that is known to be of a category, whether that is enough to be remembered, its
	// importance from 0 to 1, and why in words.
	Score(text string, category Category) (important bool, importance float64, reason string)
}

// tokens is about how many tokens a model makes of a text: one a character in scripts without spaces, else one for four.
func tokens(text string) int {
	quarters := 0
	for _, r := range text {
		if r > 0x2e7f {
			quarters += 4
		} else {
			quarters++
		}
	}
	return quarters/4 + 8 // and who says it
}

// cutPiece is as many of the messages as fit so many tokens, at least one, which is shortened when it alone is longer.
func cutPiece(messages []Message, most int) []Message {
	used := 0
	for i := range messages {
		used += tokens(messages[i].Content)
		if used <= most {
			continue
		}
		if i > 0 {
			return messages[:i]
		}
		runes := []rune(messages[0].Content)
		messages[0].Content = string(runes[:min(len(runes), most)])
		return messages[:1]
	}
	return messages
}
