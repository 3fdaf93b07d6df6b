package cli

import (
	"cmp"
	"fmt"

	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"
)

// quotas shows the used part of each limit.
func (s *screen) quotas(list []*memsidecarv1.Quota) {
	t := &table{columns: []column{{name: "quota"}, {name: "of"}, {name: "used", right: true}, {name: "allowed", right: true}}}
	rows := 0
	for _, q := range list {
		if q.GetLimit() == 0 {
			continue
		}
		used := cell{text: fmt.Sprint(q.GetUsed())}
		if q.GetUsed() >= q.GetLimit() {
			used.style = yellow
		}
		t.row(q.GetKey(), cmp.Or(q.GetUserId(), "the namespace"), used, q.GetLimit())
		rows++
	}
	if rows > 0 {
		s.say("\n")
		s.print(t)
	}
}
