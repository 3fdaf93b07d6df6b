package server

import (
	"strings"
	"testing"

	"github.com/memsidecar/memsidecar/internal/vectorstore"
)

func TestDeep(t *testing.T) {
	for _, n := range []int{1000, 10000, 100000,1000000} {
		var f vectorstore.Filter
		err := parseFilter(strings.Repeat("(", n)+"explicit=true"+strings.Repeat(")", n), &f)
		t.Log(n, err != nil)
	}
	for _, n := range []int{1000, 10000, 100000,1000000} {
		var f vectorstore.Filter
		err := parseFilter(strings.Repeat("NOT ", n)+"explicit=true", &f)
		t.Log(n, err != nil)
		err = parseFilter("a"+ strings.Repeat(".a", n)+"=true", &f)
		t.Log(n, err != nil)
	}
}
func TestOdd(t *testing.T) {
	for _, s := range []string{`agent_id = language`, `explicit = explicit`, `importance >= importance`, `agent_id="a" AND agent_id="b"`,
		`explicit=true AND explicit=false`, `"a" < language`, `importance > -0.5`, `importance > 1`, `kind:"fact"`, `kind = fact`, `language = zh`, `explicit = 1`, `explicit`, `-explicit=true`, `create_time > timestamp("2026-01-01T00:00:00Z")`,
		`create_time > "2026-01-01"`, `true`, `kind = "fact" OR kind="plan"`, `importance > 1e400`, `importance = 99999999999999999999`, `text = "a"`, "kind = \"fa\x00ct\"", ` `, `importance > 0.5 importance < 0.8`, `agent_id = "*"`, `agent_id = "a*"`, `timestamp("x") = create_time`,`create_time > duration("1s")`,`kind = "fact" AND`, `importance > 0.5.5`, `create_time > 5`, `importance > -1`, `importance >= NaN`} {
		var f vectorstore.Filter
		t.Logf("%s → %v %+v", s, parseFilter(s, &f), f)
	}
}
