package vectorstore

import (
	"context"

	"github.com/memsidecar/memsidecar/internal/memory"
)

// Survey reads a namespace for an operator's audit. Unlike Store it covers all users. It reads a page at a time, so that it
// blocks neither the writer nor a checkpoint of the write-ahead log.
type Survey interface {
	// Users returns up to limit ids of users who have memories, in the order of their bytes, after the one given.
	Users(ctx context.Context, namespace, after string, limit int) ([]string, error)
	// Survey returns a page of up to limit memories of a user, of any status, newest first. after is the next of the page
	// before, empty for the first; next is empty on the last page. Each memory comes with its first vector of the fingerprint.
	Survey(ctx context.Context, user memory.User, fingerprint, after string, limit int) (items []SurveyItem, next string, err error)
}

// SurveyItem is a memory as an audit sees it.
type SurveyItem struct {
	Memory memory.Memory
	Vector []float32 // nil: it has none
}
