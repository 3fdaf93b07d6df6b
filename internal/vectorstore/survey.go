package vectorstore

import (
	"context"

	"github.com/memsidecar/memsidecar/internal/memory"
)

// Survey is how an operator's audit reads a namespace. Unlike Store it goes over all its users; it only reads, a page at a
// time, so that it keeps neither the writer nor the write-ahead log.
type Survey interface {
	// Users returns up to limit ids of users who have memories, in the order of their bytes, after the one given.
	Users(ctx context.Context, namespace, after string, limit int) ([]string, error)
	// Survey returns up to limit memories of a user whatever their status, newest first, after the place given, which is
	// empty at first; next is empty on the last page. Each has its first vector of the fingerprint, if it has one.
	Survey(ctx context.Context, user memory.User, fingerprint, after string, limit int) (items []SurveyItem, next string, err error)
}

// SurveyItem is a memory as an audit sees it.
type SurveyItem struct {
	Memory memory.Memory
	Vector []float32 // nil: it has none
}
