package server

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"

	"google.golang.org/protobuf/proto"

	"github.com/memsidecar/memsidecar/internal/memory"
)

const (
	defaultPageSize = 50
	messagePageSize = 20 // of ListMessages
	maxPageSize     = 1000
)

// pageToken is opaque to callers. It is bound to its query: a token used with other fields is refused, because the page
// it names means nothing there.
type pageToken struct {
	After string `json:"a"`
	Query []byte `json:"q"`
}

// pagedRequest is a request for a page, following AIP-158.
type pagedRequest interface {
	proto.Message
	GetPageSize() int32
	GetPageToken() string
}

// page reads the size, if there is one, and the place of the page that is asked for.
func page(r pagedRequest, usual int, v *memory.Violations) (size int, after string) {
	size = int(r.GetPageSize())
	switch {
	case size == 0:
		size = usual
	case size < 0:
		v.Add("page_size", "is negative")
	case size > maxPageSize:
		size = maxPageSize // AIP-158: coerced, not refused
	}
	if r.GetPageToken() == "" {
		return size, ""
	}
	var token pageToken
	data, err := base64.RawURLEncoding.DecodeString(r.GetPageToken())
	if err == nil {
		err = json.Unmarshal(data, &token)
	}
	switch {
	case err != nil:
		v.Add("page_token", "is not one this server gave out: start again without it")
	case string(token.Query) != string(queryHash(r)):
		v.Add("page_token", "belongs to another query: repeat the fields of the first page, or start again without it")
	}
	return size, token.After
}

// nextPageToken is the token of the page after, or "".
func nextPageToken(r pagedRequest, after string) (string, error) {
	if after == "" {
		return "", nil
	}
	data, err := json.Marshal(pageToken{After: after, Query: queryHash(r)})
	return base64.RawURLEncoding.EncodeToString(data), err
}

// queryHash is over everything but the page's size and place.
func queryHash(r pagedRequest) []byte {
	query := proto.Clone(r)
	m := query.ProtoReflect()
	fields := m.Descriptor().Fields()
	m.Clear(fields.ByName("page_size"))
	m.Clear(fields.ByName("page_token"))
	data, err := proto.MarshalOptions{Deterministic: true}.Marshal(query)
	if err != nil {
		return nil // a request that was decoded can be encoded
	}
	sum := sha256.Sum256(append([]byte(m.Descriptor().FullName()), data...))
	return sum[:12]
}
