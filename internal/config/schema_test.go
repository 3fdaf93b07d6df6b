package config

import (
	"os"
	"reflect"
	"strings"
	"testing"
)

// TestWriteYAML: The output has every key, in order, with its origin. With UPDATE_DOCS=1 the test writes the expected output.
func TestWriteYAML(t *testing.T) {
	file := write(t, `
retrieval:
  prompts:
    en: {header: "【Notes】", note: "", footer: "123"}
    zh: {header: "【关于】", note: "一\n# 二", footer: "【结束】"}
rules:
  threshold: 0.6
  max_statements: 7
  max_statement_runes: 300
  signals:
    - {name: crew, weight: 2, phrases: {zh: [船员], en: [my crew]}}
`)
	l := mustLoad(t, Sources{
		File: file, Environ: environ("MEMSIDECAR_QUEUE_WORKERS=8"), Flags: map[string]string{"log.level": "debug", "data_dir": "/d"},
	})
	var b strings.Builder
	if err := l.WriteYAML(&b); err != nil {
		t.Fatal(err)
	}
	got := strings.ReplaceAll(b.String(), file, "FILE")
	const golden = "testdata/printed.yaml"
	if os.Getenv("UPDATE_DOCS") != "" {
		if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("the output differs from %s, which UPDATE_DOCS=1 go test ./internal/config -run TestWriteYAML writes; it is\n%s", golden, got)
	}
}

func TestReference(t *testing.T) {
	keys := Reference()
	seen := map[string]bool{}
	for _, k := range keys {
		if k.Key == "" || seen[k.Key] || seen[k.Env] {
			t.Errorf("%+v has the name of another", k)
		}
		seen[k.Key], seen[k.Env] = true, true
		if k.Doc == "" {
			t.Errorf("%s has no description: add one to keys.yaml", k.Key)
		} else if k.Type == "" || strings.HasSuffix(k.Doc, ".") || strings.ContainsAny(k.Doc+k.Allowed+k.Default, "|\n") {
			t.Errorf("%+v: a type is missing, the description ends with a full stop, or there is a | or a line break in it", k)
		}
		limited := k.Type == "integer" || k.Type == "number" || k.Type == "duration"
		if limited && k.Allowed == "" && !strings.Contains(k.Doc, " to ") {
			t.Errorf("%s has no range: add the tags min and max to its field in config.go", k.Key)
		}
	}
	for key := range keyDocs() {
		if !seen[key] {
			t.Errorf("keys.yaml describes %s, which is not a key", key)
		}
	}
	want := []Key{
		{"retrieval.top_k", "MEMSIDECAR_RETRIEVAL_TOP_K", "integer", "3", "1 to 100", "maximum number of memories in an answer"},
		{
			"retrieval.budget",
			"MEMSIDECAR_RETRIEVAL_BUDGET",
			"duration",
			"800ms",
			"1ms to 1m",
			"time limit of a Retrieve call; what is not found by then is left out and the answer is marked as degraded",
		},
		{"log.format", "MEMSIDECAR_LOG_FORMAT", "text", "text", "text or json", "format of log lines"},
		{
			"retrieval.prompts.<language>.footer",
			"MEMSIDECAR_RETRIEVAL_PROMPTS_<LANGUAGE>_FOOTER",
			"text",
			"built in for en, zh",
			"",
			"last line of the block",
		},
	}
	for _, w := range want {
		if got := keys[indexOf(keys, w.Key)]; got != w {
			t.Errorf("got %+v, want %+v", got, w)
		}
	}
	for i, s := range settingsOf(reflect.ValueOf(Config{})) { // without map entries
		if l := schemaOf(reflect.TypeFor[Config]())[indexOf(keys, s.key)]; l.key != s.key {
			t.Errorf("setting %d is %s, the schema has %s", i, s.key, l.key)
		}
	}
}

func indexOf(keys []Key, key string) int {
	for i, k := range keys {
		if k.Key == key {
			return i
		}
	}
	return -1
}

// sample has types that Config does not use yet.
type sample struct {
	Token  string          `koanf:"token" secret:"true"`
	Nested sampleNested    `koanf:"nested"`
	Names  []string        `koanf:"names"`
	Each   map[string]pair `koanf:"each" each:"name"`
}

type sampleNested struct {
	Limits []int   `koanf:"limits"`
	Rate   float64 `koanf:"rate" min:"0" max:"10"`
	On     bool    `koanf:"on"`
	Pin    int     `koanf:"pin" min:"1000" max:"9999" secret:"true"`
}

type pair struct {
	Left  []string `koanf:"left"`
	Right bool     `koanf:"right"`
}

func TestOtherTypes(t *testing.T) {
	var bad problems
	got, from, err := load(sample{Names: []string{"x"}}, Sources{
		File: write(t, "names: [from, file]\neach: {a: {right: true}, b: {left: [l]}}\nnested: {rate: 2, pin: 1234}\n"),
		Environ: []string{
			"MEMSIDECAR_NAMES= one, two,,three ", "MEMSIDECAR_NESTED_LIMITS=1,2", "MEMSIDECAR_NESTED_ON=true",
			"MEMSIDECAR_EACH_A_LEFT=p,q", "MEMSIDECAR_TOKEN=sk-123",
		},
		Flags: map[string]string{"each.b.left": ""},
	}, &bad)
	if err != nil || len(bad) > 0 {
		t.Fatal(err, bad)
	}
	want := sample{
		Token: "sk-123", Names: []string{"one", "two", "three"},
		Nested: sampleNested{Limits: []int{1, 2}, Rate: 2, On: true, Pin: 1234},
		Each:   map[string]pair{"a": {Left: []string{"p", "q"}, Right: true}, "b": {Left: []string{}}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if from.of("token") != "MEMSIDECAR_TOKEN" || from.of("each.b.left") != fromFlag {
		t.Errorf("origins: %v", from)
	}
}

// TestSecretsAreNotPrinted: Printed configurations never contain secrets.
func TestSecretsAreNotPrinted(t *testing.T) {
	var b strings.Builder
	secret := sample{Token: "sk-123", Nested: sampleNested{Pin: 1234}}
	if err := writeYAML(&b, secret, origins{"token": "MEMSIDECAR_TOKEN"}); err != nil {
		t.Fatal(err)
	}
	got := b.String()
	if !strings.Contains(got, "token: '********' # MEMSIDECAR_TOKEN\n") || !strings.Contains(got, "pin: '********' # default\n") ||
		strings.Contains(got, "123") {
		t.Errorf("printed:\n%s", got)
	}

	for _, text := range []string{"token: 123", "token: '" + mask + "'", "nested: {pin: 99123}", "nested: {pin: x123}", "token: [x123]"} {
		var bad problems
		if _, _, err := load(sample{}, Sources{File: write(t, text)}, &bad); err != nil {
			t.Fatal(err)
		}
		if len(bad) != 1 || strings.Contains(bad[0].Problem+bad[0].Fix, "123") {
			t.Errorf("%s: %v", text, bad)
		}
	}

	b.Reset()
	if err := writeYAML(&b, sample{}, nil); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(b.String(), `token: "" # default`) {
		t.Errorf("a secret that is not set looks as if it were:\n%s", &b)
	}
}

func TestNearest(t *testing.T) {
	known := []string{"log", "log.level", "log.format", "queue.max_age", "queue.max_wait", "prompts.<language>.header"}
	tests := map[string]string{
		"log.levle":          "log.level",
		"Log.Level":          "log.level",
		"queue.maxage":       "queue.max_age",
		"format":             "log.format",
		"queue.level":        "log.level",
		"prompts.en.haeder":  "prompts.en.header",
		"prompts.en.caption": "",
		"something.else":     "",
		"":                   "",
	}
	for name, want := range tests {
		if got := nearest(name, known); got != want {
			t.Errorf("nearest to %q: got %q, want %q", name, got, want)
		}
	}
}

func TestDistance(t *testing.T) {
	tests := []struct {
		a, b string
		want int
	}{
		{"", "", 0},
		{"", "ab", 2},
		{"ab", "", 2},
		{"ab", "ab", 0},
		{"ab", "ba", 1},
		{"abc", "ac", 1},
		{"abc", "axc", 1},
		{"kitten", "sitting", 3},
		{"retreival", "retrieval", 1},
	}
	for _, test := range tests {
		if got := distance(test.a, test.b); got != test.want {
			t.Errorf("%q to %q: got %d, want %d", test.a, test.b, got, test.want)
		}
	}
}
