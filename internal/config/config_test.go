package config

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/memsidecar/memsidecar/internal/decide/local"
	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/retrieve"
)

// write makes a configuration file.
func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "memsidecar.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// environ is an environment with a home folder.
func environ(vars ...string) []string {
	return append([]string{"HOME=/home/ann", "PATH=/bin"}, vars...)
}

func mustLoad(t *testing.T, sources Sources) *Loaded {
	t.Helper()
	l, err := Load(sources)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// wrong loads an invalid file and returns the problems, with the file's path shortened to FILE.
func wrong(t *testing.T, sources Sources) []string {
	t.Helper()
	_, err := Load(sources)
	var invalid *InvalidError
	if !errors.As(err, &invalid) {
		t.Fatalf("got %v, want an *InvalidError", err)
	}
	var lines []string
	for _, p := range invalid.Problems {
		if !strings.Contains(err.Error(), p.String()) {
			t.Errorf("the error's text lacks %q", p)
		}
		line := p.String()
		if sources.File != "" {
			line = strings.ReplaceAll(line, sources.File, "FILE")
		}
		lines = append(lines, line)
	}
	return lines
}

func TestDefaults(t *testing.T) {
	c := mustLoad(t, Sources{Environ: environ()}).Config
	want := defaults(dataDir("linux", environ()))
	want.Rules.Signals = c.Rules.Signals
	if c.DataDir = want.DataDir; !reflect.DeepEqual(c, want) {
		t.Errorf("got %+v, want %+v", c, want)
	}
	if len(c.Rules.Signals) != 0 {
		t.Error("signals are set")
	}
	for _, s := range settingsOf(reflect.ValueOf(want)) {
		if fix := outside(s.value, s.tags); fix != "" {
			t.Errorf("the default of %s, in defaults of config.go, is %v: %s", s.key, s.value, fix)
		}
	}
}

func TestPrecedence(t *testing.T) {
	file := write(t, `
retrieval: {top_k: 4, min_relevance: 0.1, budget: 100ms}
queue: # all of it commented out
`)
	env := environ("MEMSIDECAR_RETRIEVAL_TOP_K=5", "MEMSIDECAR_RETRIEVAL_MIN_RELEVANCE=0.2", "MEMSIDECAR_QUEUE_WORKERS=")
	flags := map[string]string{"retrieval.top_k": "6"}
	tests := []struct {
		name         string
		sources      Sources
		topK         int
		minRelevance float64
		budget       time.Duration
	}{
		{"defaults", Sources{Environ: environ()}, 3, 0.02, 800 * time.Millisecond},
		{"file", Sources{File: file, Environ: environ()}, 4, 0.1, 100 * time.Millisecond},
		{"environment", Sources{File: file, Environ: env}, 5, 0.2, 100 * time.Millisecond},
		{"flags", Sources{File: file, Environ: env, Flags: flags}, 6, 0.2, 100 * time.Millisecond},
		{"flags alone", Sources{Environ: environ(), Flags: flags}, 6, 0.02, 800 * time.Millisecond},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			c := mustLoad(t, test.sources).Config
			r := c.Retrieval
			if r.TopK != test.topK || r.MinRelevance != test.minRelevance || r.Budget != test.budget {
				t.Errorf("got %d, %g, %s; want %d, %g, %s", r.TopK, r.MinRelevance, r.Budget, test.topK, test.minRelevance, test.budget)
			}
			if r.MaxContextChars != 2000 || c.Queue.Workers != 8 {
				t.Errorf("unset values have changed: %+v", c)
			}
		})
	}
}

// TestEveryTypeIsParsed: Values of every type are read from a file and from text.
func TestEveryTypeIsParsed(t *testing.T) {
	signals := []local.ConfiguredSignal{
		{Name: "place", Weight: 3, Phrases: map[string][]string{"en": {"harbour"}}},
		{Name: "crew", Weight: 2, Kind: "fact", Phrases: map[string][]string{"en": {"my crew", "sail with"}, "zh": {"船员"}}},
	}
	prompts := retrieve.DefaultPrompts()
	english := prompts["en"]
	english.Header = "[notes]"
	prompts["en"] = english
	prompts["de"] = retrieve.Prompt{Header: "[Notizen]", Footer: "[Ende]"}
	sources := map[string]Sources{
		"file": {Environ: environ(), File: write(t, `
listen: "[::1]:0"
data_dir: /srv/memory
time_zone: Asia/Shanghai
visibility: user
trace: {retention: 0}
shutdown_grace: 1m30s
retrieval:
  vector_weight: 1
  prompts:
    en: {header: "[notes]"}
    de: {header: "[Notizen]", footer: "[Ende]"}
rules:
  threshold: 0.75
  signals:
    - {name: place, weight: 3, phrases: {en: [harbour]}}
    - name: crew
      weight: 2
      kind: fact
      phrases: {en: [my crew, sail with], zh: [船员]}
`)},
		"environment": {Environ: environ(
			"MEMSIDECAR_LISTEN=[::1]:0", "MEMSIDECAR_DATA_DIR=/srv/memory", "MEMSIDECAR_TIME_ZONE=Asia/Shanghai",
			"MEMSIDECAR_VISIBILITY=user", "MEMSIDECAR_TRACE_RETENTION=0", "MEMSIDECAR_SHUTDOWN_GRACE= 1m30s ",
			"MEMSIDECAR_RETRIEVAL_VECTOR_WEIGHT=1", "MEMSIDECAR_RETRIEVAL_PROMPTS_EN_HEADER=[notes]",
			"MEMSIDECAR_RETRIEVAL_PROMPTS_DE_HEADER=[Notizen]", "MEMSIDECAR_RETRIEVAL_PROMPTS_DE_FOOTER=[Ende]",
			"MEMSIDECAR_RULES_THRESHOLD= 0.75", "MEMSIDECAR_RULES_SIGNALS=[{name: place, weight: 3, phrases: {en: [harbour]}}, "+
				"{name: crew, weight: 2, kind: fact, phrases: {en: [my crew, sail with], zh: [船员]}}]",
		)},
		"flags": {Environ: environ(), Flags: map[string]string{
			"listen": "[::1]:0", "data_dir": "/srv/memory", "time_zone": "Asia/Shanghai", "visibility": "user",
			"trace.retention": "0s", "shutdown_grace": "90s", "retrieval.vector_weight": "1.0",
			"retrieval.prompts.en.header": "[notes]", "retrieval.prompts.de.header": "[Notizen]",
			"retrieval.prompts.de.footer": "[Ende]", "retrieval.prompts.de.note": "", "rules.threshold": "0.75",
			"rules.signals": `[{"name": "place", "weight": 3, "phrases": {"en": ["harbour"]}}, {"name": "crew", "weight": 2, "kind": "fact",
				"phrases": {"en": ["my crew", "sail with"], "zh": ["船员"]}}]`,
		}},
	}
	want := defaults("/srv/memory")
	want.Listen, want.TimeZone, want.Visibility = "[::1]:0", "Asia/Shanghai", "user"
	want.Trace.Retention, want.ShutdownGrace = 0, 90*time.Second
	want.Retrieval.VectorWeight, want.Retrieval.Prompts = 1, prompts
	want.Rules.Threshold, want.Rules.Signals = .75, signals
	for name, sources := range sources {
		t.Run(name, func(t *testing.T) {
			l := mustLoad(t, sources)
			if !reflect.DeepEqual(l.Config, want) {
				t.Errorf("got  %+v\nwant %+v", l.Config, want)
			}
			var printed strings.Builder
			if err := l.WriteYAML(&printed); err != nil {
				t.Fatal(err)
			}
			again := mustLoad(t, Sources{File: write(t, printed.String())})
			if !reflect.DeepEqual(again.Config, l.Config) {
				t.Errorf("printed and loaded again it is %+v, was %+v\n%s", again.Config, l.Config, &printed)
			}
		})
	}
}

// TestPrintedTextIsReadUnchanged: Any text is unchanged after printing and loading.
func TestPrintedTextIsReadUnchanged(t *testing.T) {
	for _, text := range []string{
		"a # b", "# b", "null", "~", "true", "1e3", "2026-01-01", "0x10", "- a", "a: b", "{a}", "[a]", "*a", "&a", "!a", "|", ">", "%a",
		"'", `"`, `\`, " a ", "a\nb", "\na\n\n", "a\r\nb", "a\tb", "\ta", "\u0085", "a\u2028b", "\ufeffa", "\x00\x1b", "👩‍👩‍👧", "---", "...", "<<", "=",
	} {
		l := mustLoad(t, Sources{Environ: environ(), Flags: map[string]string{"retrieval.prompts.en.note": text}})
		var b strings.Builder
		if err := l.WriteYAML(&b); err != nil {
			t.Fatal(err)
		}
		again, err := Load(Sources{File: write(t, b.String())})
		if err != nil {
			t.Errorf("%q: %v", text, err)
		} else if got := again.Config.Retrieval.Prompts["en"].Note; got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
}

// TestAllMistakesAreReportedTogether: All mistakes are reported together, in order, with a remedy.
func TestAllMistakesAreReportedTogether(t *testing.T) {
	sources := Sources{
		File: write(t, `
listen: 7420
data_dir: ~/memory
log: {level: loud, levl: info}
log.format: json
max_request_bytes: 8MB
shutdown_grace:
time_zone: Mars
top_k: 4
retrival: {top_k: 3}
retrieval:
  budget: 800
  half_life: 3h
  min_relevance: .nan
  top_k: 0
  prompts:
    zh: {header: "", heder: x}
    zh-TW: {header: a, footer: b}
    fr: {note: only}
queue: 5
rules:
  threshold: 500
  signals:
    - {name: place, weigth: 3}
    - {name: place, phrases: {en: foo}}
    - 5
`),
		Environ: environ("MEMSIDECAR_FOO=", "MEMSIDECAR_RETREIVAL_TOP_K=7", "MEMSIDECAR_TOP_K=7", "MEMSIDECAR_RETRIEVAL_TOP_K=abc",
			"MEMSIDECAR_RETRIEVAL_PROMPTS_EN_FOTER=x", "MEMSIDECAR_QUEUE_BACKOFF_MIN=10m", "MEMSIDECAR_INDEX_BUDGET_MIB=1.5",
			"MEMSIDECAR_RULES_SIGNALS=[{name: new}, {name: new", "MEMSIDECAR_RETRIEVAL_PROMPTS_EN_NOTE=\xff"),
		Flags: map[string]string{"queue.max_age": "48", "retrieval": "x", "trace.retention": "-1h", "visibility": "everyone"},
	}
	want := []string{
		"MEMSIDECAR_FOO (from environment): is not a known variable: remove it; `memsidecar config reference` lists what there is",
		"MEMSIDECAR_RETREIVAL_TOP_K (from environment): is not a known variable: did you mean MEMSIDECAR_RETRIEVAL_TOP_K?",
		"MEMSIDECAR_RETRIEVAL_PROMPTS_EN_FOTER (from environment): is not a known variable: did you mean MEMSIDECAR_RETRIEVAL_PROMPTS_EN_FOOTER?",
		"MEMSIDECAR_TOP_K (from environment): is not a known variable: did you mean MEMSIDECAR_RETRIEVAL_TOP_K?",
		"data_dir (from FILE): begins with ~, which only a shell knows: write the home folder out",
		`index.budget_mib (from MEMSIDECAR_INDEX_BUDGET_MIB): is "1.5": use a whole number`,
		"listen (from FILE): is 7420: use text, in quotation marks where it looks like something else",
		"log.format (from FILE): is a key with a dot: write log: { format: … }",
		`log.level (from FILE): is "loud": use debug, info, warn or error`,
		"log.levl (from FILE): is not a known key: did you mean log.level?",
		`max_request_bytes (from FILE): is "8MB": use a whole number`,
		"queue (from FILE): is 5: use a mapping",
		"queue.backoff_min (from MEMSIDECAR_QUEUE_BACKOFF_MIN): is 10m, longer than queue.backoff_max, 5m (from default): make it shorter," +
			" or that longer",
		`queue.max_age (from --set): is "48": use a number with its unit, such as 800ms, 30s, 5m or 168h`,
		"retrieval (from --set): has no value of its own: set a key below it",
		"retrieval.budget (from FILE): is 800: use a number with its unit, such as 800ms, 30s, 5m or 168h",
		"retrieval.half_life (from FILE): is not a known key: did you mean retrieval.recency_half_life?",
		"retrieval.min_relevance (from FILE): is NaN: use 0 to 1",
		"retrieval.prompts.en.note (from MEMSIDECAR_RETRIEVAL_PROMPTS_EN_NOTE): is not valid UTF-8: write it in UTF-8",
		"retrieval.prompts.fr (from FILE): for fr needs a header and a footer: they tell the model where the notes begin and end: write them",
		`retrieval.prompts.zh-TW (from FILE): is not a base language: use the code alone, in small letters, such as "zh"`,
		"retrieval.prompts.zh.heder (from FILE): is not a known key: did you mean retrieval.prompts.zh.header?",
		"retrieval.top_k (from FILE): is 0: use 1 to 100",
		`retrieval.top_k (from MEMSIDECAR_RETRIEVAL_TOP_K): is "abc": use a whole number`,
		"retrival (from FILE): is not a known key: did you mean retrieval?",
		`rules.signals (from MEMSIDECAR_RULES_SIGNALS): is "[{name: new}, {name: new": use a list`,
		"rules.signals[0].weigth (from FILE): is not a known key: did you mean rules.signals[0].weight?",
		`rules.signals[1].phrases.en (from FILE): is "foo": use a list`,
		"rules.signals[2] (from FILE): is 5: use a mapping",
		"rules.threshold (from FILE): is 500: use 0.05 to 0.95, or 0 for the default; the former points 1 to 5 are about 0.3, 0.5, 0.6, 0.75 and 0.9",
		"shutdown_grace (from FILE): has no value: give it one, or remove it",
		`time_zone (from FILE): is "Mars", which is not a known time zone: use an IANA name, such as Asia/Shanghai, UTC or Local`,
		"top_k (from FILE): is not a known key: did you mean retrieval.top_k?",
		`trace.retention (from --set): is "-1h": use 0 to 8760h`,
		`visibility (from --set): is "everyone": use channel or user`,
	}
	got := wrong(t, sources)
	for _, line := range got {
		if !slices.Contains(want, line) {
			t.Errorf("not expected: %s", line)
		}
	}
	for _, line := range want {
		if !slices.Contains(got, line) {
			t.Errorf("missing: %s", line)
		}
	}
	if !t.Failed() && !slices.Equal(got, want) {
		t.Errorf("not sorted:\n%s", strings.Join(got, "\n"))
	}
}

// TestRenamedKeysNameTheNewOnes: A key of the release before is an error wherever it is set.
func TestRenamedKeysNameTheNewOnes(t *testing.T) {
	got := wrong(t, Sources{
		File:    write(t, "retrieval: {min_score: 0.1}\nresults: {max_items: 5}\n"),
		Environ: environ("MEMSIDECAR_RESULTS_MAX_AGE=1h", "MEMSIDECAR_RETRIEVAL_MIN_SCORE=0.1"),
		Flags:   map[string]string{"results.list_ttl": "1h"},
	})
	want := []string{
		"MEMSIDECAR_RESULTS_MAX_AGE (from environment): has a new name: write MEMSIDECAR_NUMBERED_LISTS_MAX_AGE",
		"MEMSIDECAR_RETRIEVAL_MIN_SCORE (from environment): has a new name: write MEMSIDECAR_RETRIEVAL_MIN_RELEVANCE",
		"results (from FILE): has a new name: write numbered_lists",
		"results.list_ttl (from --set): has a new name: write numbered_lists.list_ttl",
		"retrieval.min_score (from FILE): has a new name: write retrieval.min_relevance",
	}
	if !slices.Equal(got, want) {
		t.Errorf("the problems are\n%s", strings.Join(got, "\n"))
	}
	for former, now := range renamedKeys {
		if now != "numbered_lists" && !slices.ContainsFunc(Reference(), func(r Key) bool { return r.Key == now }) {
			t.Errorf("%s is now %s, which does not exist", former, now)
		}
	}
}

// TestSingleMistakes: Single mistakes are reported.
func TestSingleMistakes(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "none.yaml")
	tests := []struct {
		name    string
		sources Sources
		want    string // the beginning of the only line
	}{
		{"missing file", Sources{File: missing}, "file (from FILE): does not exist: "},
		{"folder", Sources{File: t.TempDir()}, "file (from FILE): cannot be used: read FILE: is a directory: make it readable"},
		{"not YAML", Sources{File: write(t, "a: b: c")}, "file (from FILE): cannot be used: yaml: "},
		{"a list", Sources{File: write(t, "- a")}, "file (from FILE): cannot be used: yaml: "},
		{
			"twice",
			Sources{File: write(t, "log: {}\nlog: {}")},
			`file (from FILE): cannot be used: yaml: unmarshal errors: line 2: mapping key "log" already defined at line 1`,
		},
		{
			"two documents",
			Sources{File: write(t, "log: {}\n---\nlog: {}")},
			"file (from FILE): cannot be used: yaml: more than one document",
		},
		{
			"a key that is a number",
			Sources{File: write(t, "retrieval: {prompts: {1: {header: a, footer: b}}}")},
			"retrieval.prompts.1 (from FILE): is not a base language: ",
		},
		{"no port", Sources{Flags: map[string]string{"listen": "localhost"}}, `listen (from --set): is "localhost": use host:port`},
		{
			"named port",
			Sources{Flags: map[string]string{"listen": ":http"}},
			`listen (from --set): is ":http", whose port is not 0 to 65535: `,
		},
		{
			"high port",
			Sources{Flags: map[string]string{"listen": ":65536"}},
			`listen (from --set): is ":65536", whose port is not 0 to 65535: `,
		},
		{"no folder", Sources{Flags: map[string]string{"data_dir": ""}}, "data_dir (from --set): is empty: "},
		{
			"no time zone",
			Sources{Flags: map[string]string{"time_zone": ""}},
			`time_zone (from --set): is "", which is not a known time zone: `,
		},
		{
			"overridden",
			Sources{File: write(t, "retrieval: {top_k: x}"), Flags: map[string]string{"retrieval.top_k": "5"}},
			`retrieval.top_k (from FILE): is "x": use a whole number`,
		},
		{
			"infinite",
			Sources{Flags: map[string]string{"retrieval.vector_weight": "+Inf"}},
			`retrieval.vector_weight (from --set): is +Inf: use 0 to 1`,
		},
		{"too large", Sources{File: write(t, "queue: {workers: 99999999999999999999}")}, "queue.workers (from FILE): is "},
		{
			"wrong by a rule of rules",
			Sources{Flags: map[string]string{"rules.signals": "[{name: new, phrases: {en: [a b]}}]"}},
			`rules.signals[0].weight (from --set): is 0: use -100 to 100, but not 0`,
		},
		{
			"empty wording",
			Sources{Flags: map[string]string{"retrieval.prompts.en.footer": " "}},
			"retrieval.prompts.en (from --set): for en needs a header and a footer",
		},
		{
			"backoff_max",
			Sources{Flags: map[string]string{"queue.backoff_max": "500ms"}},
			"queue.backoff_min (from default): is 1s, longer than queue.backoff_max, 500ms (from --set): ",
		},
		{
			"backoff_max that is wrong itself",
			Sources{Flags: map[string]string{"queue.backoff_max": "x", "queue.backoff_min": "1h"}},
			`queue.backoff_max (from --set): is "x": `,
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			test.sources.Environ = environ()
			got := wrong(t, test.sources)
			if len(got) != 1 || !strings.HasPrefix(got[0], test.want) {
				t.Errorf("got %q, want one that begins with %q", got, test.want)
			}
		})
	}
}

// TestForeignVariablesAreIgnored: Variables that users did not set for memsidecar are not errors.
func TestForeignVariablesAreIgnored(t *testing.T) {
	mustLoad(t, Sources{Environ: environ(
		"MEMSIDECAR_CONFIG=/etc/memsidecar.yaml",                                     // a setting of cmd
		"MEMSIDECAR_ADDR=127.0.0.1:1", "MEMSIDECAR_NAMESPACE=n", "MEMSIDECAR_USER=u", // settings of the clients in cmd
		// set by Kubernetes for services called memsidecar and memsidecar-admin
		"MEMSIDECAR_SERVICE_HOST=10.0.0.11", "MEMSIDECAR_SERVICE_PORT=7420", "MEMSIDECAR_SERVICE_PORT_GRPC=7420",
		"MEMSIDECAR_PORT=tcp://10.0.0.11:7420", "MEMSIDECAR_PORT_7420_TCP=tcp://10.0.0.11:7420",
		"MEMSIDECAR_PORT_7420_TCP_PROTO=tcp", "MEMSIDECAR_PORT_7420_TCP_PORT=7420", "MEMSIDECAR_PORT_7420_TCP_ADDR=10.0.0.11",
		"MEMSIDECAR_ADMIN_SERVICE_HOST=10.0.0.12", "MEMSIDECAR_ADMIN_PORT=tcp://10.0.0.12:80",
	)})
	if got := wrong(t, Sources{Environ: environ("MEMSIDECAR_PORT=7420")}); !strings.HasPrefix(got[0], "MEMSIDECAR_PORT (") {
		t.Errorf("got %q", got)
	}
}

func TestDataDir(t *testing.T) {
	tests := []struct {
		goos    string
		environ []string
		want    string
	}{
		{"linux", []string{"HOME=/home/ann"}, "/home/ann/.local/share/memsidecar"},
		{"linux", []string{"HOME=/home/ann", "XDG_DATA_HOME=/data"}, "/data/memsidecar"},
		{"linux", []string{"HOME=/home/ann", "XDG_DATA_HOME=data"}, "/home/ann/.local/share/memsidecar"},
		{"linux", []string{"XDG_DATA_HOME=data"}, ""},
		{"linux", nil, ""},
		{"darwin", []string{"HOME=/Users/ann"}, "/Users/ann/Library/Application Support/memsidecar"},
		{"windows", []string{"LOCALAPPDATA=/local", "HOME=/x"}, "/local/memsidecar"},
	}
	for _, test := range tests {
		if got := dataDir(test.goos, test.environ); got != filepath.FromSlash(test.want) {
			t.Errorf("%s %q: got %q, want %q", test.goos, test.environ, got, test.want)
		}
	}
	want := "data_dir (from default): cannot be guessed, because the environment names no home folder: set it"
	if got := wrong(t, Sources{}); len(got) != 1 || got[0] != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestDigest: The ranges are those of the first design, and the templates are usable.
func TestDigest(t *testing.T) {
	for value, good := range map[string]bool{
		"digest.interval=0": true, "digest.interval=100": true, "digest.interval=101": false, "digest.max_tokens=100": true,
		"digest.max_tokens=32000": true, "digest.max_tokens=99": false, "digest.max_tokens=32001": false,
		"digest.templates={en: '{{.Day}}'}": true, "digest.templates={en: '{{.Nothing}}'}": false, "digest.export_dir=~/notes": false,
	} {
		key, text, _ := strings.Cut(value, "=")
		_, err := Load(Sources{Flags: map[string]string{"data_dir": "/d", key: text}})
		if (err == nil) != good || err != nil && !strings.Contains(err.Error(), key) {
			t.Errorf("%s: %v", value, err)
		}
	}
}

func TestShareGroups(t *testing.T) {
	c := mustLoad(t, Sources{Environ: environ(), File: write(t, `
share_groups:
  - channels: [team, team-announcements]
  - {namespace: site/forum, channels: ["1", "2", team]}
`)}).Config
	from := func(namespace, channel string) memory.Audience {
		return c.Policy().AudienceOf(memory.Scope{Namespace: namespace, Channel: memory.Channel{Kind: memory.ChannelGroup, ID: channel}})
	}
	announcements := memory.Channel{Kind: memory.ChannelGroup, ID: "team-announcements"}
	if !from("default", "team").Sees(announcements) || from("site/forum", "team").Sees(announcements) {
		t.Error("the lists are not those of their namespaces")
	}
	for text, want := range map[string][]string{
		`
  - channels: [team]
  - {namespace: "site/*", channels: [a, a, "", "x\ty"]}`: {
			`share_groups[0].channels (from FILE): names 1, with whom nobody can share: name two groups or more, by their channel_id`,
			`share_groups[1].channels[1] (from FILE): is "a", which the list has already: remove it`,
			`share_groups[1].channels[2] (from FILE): is empty: name a group by its channel_id`,
			`share_groups[1].channels[3] (from FILE): holds a control character: name a group by its channel_id`,
			`share_groups[1].namespace (from FILE): holds a character that is not allowed: use 1 to 8 segments of letters, digits, ".", ` +
				`"_" and "-", joined by "/": name one namespace, or leave it out for default`,
		},
		`
  - {channels: [a, 7]}
  - {channel: [a, b]}`: {
			`share_groups[0].channels[1] (from FILE): is 7: use text, in quotation marks where it looks like something else`,
			`share_groups[1].channel (from FILE): is not a known key: did you mean share_groups[1].channels?`,
		},
	} {
		got := wrong(t, Sources{Environ: environ(), File: write(t, "share_groups:"+text)})
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("%s\ngives\n%s", text, strings.Join(got, "\n"))
		}
	}
}
