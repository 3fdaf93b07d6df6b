package client

import (
	"cmp"
	"fmt"

	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"
)

// quotas says how much is stored of what may be. What is not limited is left out while there is none of it.
func (s *screen) quotas(list []*memsidecarv1.Quota) {
	t := &table{columns: []column{{name: "quota"}, {name: "of"}, {name: "used", right: true}, {name: "allowed", right: true}}}
	rows := 0
	for _, q := range list {
		if q.GetLimit() == 0 && q.GetUsed() == 0 {
			continue
		}
		used, allowed := cell{text: fmt.Sprint(q.GetUsed())}, "any"
		if q.GetLimit() > 0 {
			allowed = fmt.Sprint(q.GetLimit())
			if q.GetUsed() >= q.GetLimit() {
				used.look = yellow
			}
		}
		t.row(q.GetKey(), cmp.Or(q.GetUserId(), "the namespace"), used, allowed)
		rows++
	}
	if rows > 0 {
		s.say("\n")
		s.print(t)
	}
}
