package digest

import (
	"context"
	"strconv"
	"time"

	"github.com/memsidecar/memsidecar/internal/memory"
)

// Piece is a part of a session in which an Extractor looks for findings.
type Piece struct {
	Scope    memory.Scope // the user and the place
	Messages []Message    // oldest first, never empty
	Location *time.Location
	Language string // of most of it, as lexical.Language names it
	// Known are statements that were already extracted from the same day by considering.
	Known []string
}

// Name identifies a message in provenance: its id, or its position in the session.
func (m *Message) Name() string {
	if m.ID != "" {
		return m.ID
	}
	return "@" + strconv.FormatInt(m.Position, 10)
}

// Extractor finds the content of digests.
type Extractor interface {
	// Name is "rules", or the model as "provider/model".
	Name() string
	// Extract returns findings in the order in which they were said, with statements in the third person and in the language of the
	// conversation. It is safe for concurrent use. An error means that it could not extract, never that there is nothing; a temporary
	// error is a *memory.TransientError.
	Extract(ctx context.Context, p Piece) ([]Finding, error)
}

// Scorer rates the importance of a text by the signals in it.
type Scorer interface {
	// Score returns the points of a text of a category, whether they are enough to remember it, its importance from 0 to 1, and the
	// reason in words.
	Score(text string, category Category) (important bool, importance float64, reason string)
}

// tokens estimates the tokens of a text: one per character in scripts without spaces, else one per four characters.
func tokens(text string) int {
	quarters := 0
	for _, r := range text {
		if r > 0x2e7f {
			quarters += 4
		} else {
			quarters++
		}
	}
	return quarters/4 + 8 // for the speaker's name
}

// cutPiece returns as many messages as fit into the token limit, at least one. A single message that is too long is shortened.
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
