package eval

import (
	"encoding/json"
	"io"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"
)

// Misses collects wrong results for developers. The zero value keeps nothing.
type Misses struct{ list *[]any }

// NewMisses returns Misses that keep results.
func NewMisses() Misses { return Misses{list: &[]any{}} }

func (m Misses) add(miss any) {
	if m.list != nil {
		*m.list = append(*m.list, miss)
	}
}

// WriteLines writes one JSON object per line, in the order of the files.
func (m Misses) WriteLines(w io.Writer) error {
	if m.list == nil {
		return nil
	}
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	for _, miss := range *m.list {
		if err := encoder.Encode(miss); err != nil {
			return err
		}
	}
	return nil
}

// missedQuestion is a question with evidence that is not among the first ten hits.
type missedQuestion struct {
	Source       string     `json:"source"`
	Conversation string     `json:"conversation"`
	Category     string     `json:"category"`
	Question     string     `json:"question"`
	Evidence     []string   `json:"evidence"`
	Found        int        `json:"found"`
	Hits         [][]string `json:"hits"` // the turns of each, best first
}

func message(id string, role memsidecarv1.Role, text string, at time.Time) *memsidecarv1.Message {
	return &memsidecarv1.Message{Id: id, Role: role, Content: text, SendTime: timestamppb.New(at)}
}
