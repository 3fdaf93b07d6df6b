package model

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/memsidecar/memsidecar/internal/decide"
)

// groupReader reads answers about several users of one page.
type groupReader struct {
	page    page
	readers []*reader // one for each user
	cut     bool      // an answer that broke off was read
}

// read gives each user the ops that name them. An op that names nobody belongs to the user whose message it cites first. An answer is
// unusable when nothing of it can be used for anybody.
func (r *groupReader) read(text string) ([]decide.Extraction, error) {
	list, whole, err := opList(text)
	switch {
	case err != nil:
		return nil, err
	case !whole && !r.cut:
		r.cut = true
		return nil, errors.New("its JSON breaks off before it ends: answer in fewer words")
	}
	own := make([][]json.RawMessage, len(r.readers))
	var unowned []string
	for _, raw := range list {
		if i := r.owner(raw); i >= 0 {
			own[i] = append(own[i], raw)
		} else {
			unowned = append(unowned, `"user" names nobody of the record`)
		}
	}
	found := make([]decide.Extraction, len(r.readers))
	var problem error
	usable := len(list) == 0
	for i, user := range r.readers {
		user.cut = true // asked for once more above
		found[i], err = user.readList(own[i], whole)
		if err != nil {
			problem = err
			continue
		}
		usable = usable || len(own[i]) > 0
	}
	if !usable {
		if problem == nil {
			problem = errors.New(unowned[0])
		}
		return nil, problem
	}
	found[0].Dropped = append(found[0].Dropped, unowned...)
	return found, nil
}

// owner returns the number of the user whose memory an op changes, or -1.
func (r *groupReader) owner(raw json.RawMessage) int {
	g, ok := object(raw)
	if !ok {
		return -1
	}
	if name := strings.Trim(g.text("user"), `"' `); name != "" {
		return slices.Index(r.page.users, name)
	}
	for _, ref := range g.list("from", "messages") {
		k := number(messageRef, ref, len(r.page.shown))
		if k < 0 {
			continue
		}
		if m := r.readers[0].in.Dialogue.Messages[k]; m.Speaker != "" {
			if i := slices.Index(r.page.users, m.Speaker); i >= 0 && spokenBy(m, m.Speaker) {
				return i
			}
		}
	}
	return -1
}
