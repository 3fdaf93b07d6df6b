package migrate

import (
	"encoding/json"
	"io"
	"strings"

	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"
)

// Fields are the names of a record's fields. Of several names the first that has a value counts. A name may be a path such as
// metadata.user_id.
type Fields struct {
	Text, ID, Time, User, Kind, Importance, Agent, Session []string
}

// LanceDB has the usual names of columns in LanceDB tables.
var LanceDB = Fields{
	Text:       []string{"text", "content", "memory", "document", "page_content", "summary"},
	ID:         []string{"id", "_id", "uuid"},
	Time:       []string{"created_at", "createdAt", "create_time", "timestamp", "time", "date", "metadata.created_at", "metadata.timestamp"},
	User:       []string{"user_id", "userId", "user", "metadata.user_id", "metadata.userId", "metadata.user"},
	Kind:       []string{"kind", "type", "category", "metadata.kind", "metadata.type", "metadata.category"},
	Importance: []string{"importance", "metadata.importance"},
	Agent:      []string{"agent_id", "agentId", "agent", "metadata.agent_id"},
	Session:    []string{"session_id", "sessionId", "session", "metadata.session_id"},
}

// Rows reads records with one statement each. With strict, a kind must be a known one or missing. Otherwise an unknown kind is ignored.
func Rows(in io.Reader, format string, f Fields, strict bool, o Options, sink Sink) error {
	_, err := records(in, nil, sink, func(line int, fields map[string]json.RawMessage) error {
		item, err := rowItem(newRow(fields, o), line, format, &f, strict)
		if err != nil {
			sink.reject(line, "%v", err)
			return nil
		}
		return sink.Item(item)
	})
	return err
}

func rowItem(r *row, line int, format string, f *Fields, strict bool) (Item, error) {
	text := r.text(f.Text...)
	if len(r.used) == 0 {
		r.wrong("it has no text: there is no field %s", strings.Join(f.Text, " or "))
	}
	id, user, agent, session := r.id(f.ID...), r.id(f.User...), r.id(f.Agent...), r.id(f.Session...)
	said, importance := r.past(f.Time...), (*float64)(nil)
	kind := r.kind(f.Kind, strict)
	if strict || r.scaled(f.Importance) {
		importance = r.share(f.Importance...)
	}
	if r.err != nil {
		return Item{}, r.err
	}
	item, err := statement(line, text)
	if err != nil {
		return Item{}, err
	}
	item.User, item.SourceID = user, id
	m := item.Memory
	m.Kind, m.Importance = kind, importance
	m.CreateTime, m.ObserveTime = stamp(said), stamp(said)
	m.Scope = &memsidecarv1.Scope{AgentId: agent, SessionId: session}
	m.Provenance = origin(format, id, "", r.others("_distance", "_score", "_rowid", "_relevance_score"))
	return item, nil
}

// kind returns the record's kind. An unknown one is kept with the other fields.
func (r *row) kind(names []string, strict bool) memsidecarv1.MemoryKind {
	if strict {
		name := r.text(names...)
		kind := kindNamed(name)
		if name != "" && kind == 0 {
			r.wrong("kind %q: use %s", clipped(name), kindNames())
		}
		return kind
	}
	for _, name := range names {
		var text string
		if value := lookup(r.fields, name); json.Unmarshal(value, &text) == nil && kindNamed(text) != 0 {
			r.used[name] = true
			return kindNamed(text)
		}
	}
	return memsidecarv1.MemoryKind_MEMORY_KIND_UNSPECIFIED
}

// scaled reports whether an importance is between 0 and 1, as in memsidecar. Other programs count from 1 to 10.
func (r *row) scaled(names []string) bool {
	for _, name := range names {
		var n float64
		if value := lookup(r.fields, name); value != nil {
			return json.Unmarshal(value, &n) == nil && n >= 0 && n <= 1
		}
	}
	return false
}
