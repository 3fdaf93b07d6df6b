package migrate

import (
	"encoding/json"
	"io"
	"slices"

	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"
)

// mem0Lists are the keys of lists of memories: get_all has "results", an export with a schema often "memories".
var mem0Lists = []string{"results", "memories"}

// mem0Texts are the keys of a memory's text in the API, in the payload of the vector database, and in schemas of exports.
var mem0Texts = []string{"memory", "data", "text", "content"}

// categories maps mem0's categories to kinds. The others are facts.
var categories = []struct {
	name string
	kind memsidecarv1.MemoryKind
}{
	{"user_preferences", memsidecarv1.MemoryKind_MEMORY_KIND_PREFERENCE},
	{"family", memsidecarv1.MemoryKind_MEMORY_KIND_RELATIONSHIP},
	{"hobbies", memsidecarv1.MemoryKind_MEMORY_KIND_PREFERENCE},
	{"entertainment", memsidecarv1.MemoryKind_MEMORY_KIND_PREFERENCE},
	{"milestones", memsidecarv1.MemoryKind_MEMORY_KIND_EXPERIENCE},
}

// Mem0 reads memories of mem0: the result of get_all, with or without pages, a plain list, or one memory per line.
func Mem0(in io.Reader, o Options, sink Sink) error {
	about, err := records(in, mem0Lists, sink, func(line int, fields map[string]json.RawMessage) error {
		r := newRow(fields, o)
		item, err := mem0Item(r, line)
		if err != nil {
			sink.reject(line, "%v", err)
			return nil
		}
		return sink.Item(item)
	})
	if err != nil {
		return err
	}
	if next := string(about["next"]); next != "" && next != "null" && next != `""` {
		sink.reject(0, "it is one page of several: get the others, too, or ask for more a page")
	}
	if relations := string(about["relations"]); relations != "" && relations != "null" && relations != "[]" {
		sink.skipLine(0, "relations of the graph are not taken, only memories")
	}
	return nil
}

func mem0Item(r *row, line int) (Item, error) {
	text := r.text(mem0Texts...)
	if len(r.used) == 0 {
		r.wrong("it has no text: there is no field memory")
	}
	id, user, agent, session := r.id("id"), r.id("user_id"), r.id("agent_id"), r.id("run_id")
	created, updated := r.past("created_at"), r.past("updated_at")
	_, until := r.time("expiration_date")
	if r.err != nil {
		return Item{}, r.err
	}
	item, err := statement(line, text)
	if err != nil {
		return Item{}, err
	}
	item.User, item.SourceID = user, id
	m := item.Memory
	m.Kind = mem0Kind(r)
	m.CreateTime, m.ObserveTime, m.ValidEndTime = stamp(created), stamp(created), stamp(until)
	if updated.After(created) {
		m.UpdateTime = stamp(updated)
	}
	m.Scope = &memsidecarv1.Scope{AgentId: agent, SessionId: session}
	m.Provenance = origin("mem0", id, "", r.others("hash", "score", "immutable", "input", "organization", "owner", "event"))
	return item, nil
}

// mem0Kind returns the kind from the metadata, otherwise from the categories.
func mem0Kind(r *row) memsidecarv1.MemoryKind {
	metadata := object(r.fields["metadata"])
	for _, name := range []string{"kind", "type", "category"} {
		var text string
		if json.Unmarshal(metadata[name], &text) == nil && kindNamed(text) != 0 {
			return kindNamed(text)
		}
	}
	var list []string
	_ = json.Unmarshal(r.fields["categories"], &list) // other shapes are ignored
	for _, category := range categories {
		if slices.Contains(list, category.name) {
			return category.kind
		}
	}
	return memsidecarv1.MemoryKind_MEMORY_KIND_FACT
}
