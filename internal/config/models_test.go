package config

import (
	"strings"
	"testing"
)

// TestModelKeysThatCannotWorkAreErrors: a key that would be ignored, or that names no model that can be found, is refused
// for every part by the same rules. Nothing that can work is refused.
func TestModelKeysThatCannotWorkAreErrors(t *testing.T) {
	for _, c := range []struct {
		set  string // below each part's section
		want string // in the message; "" when it is valid
	}{
		{"", ""},
		{"model=deepseek-chat", `model (from --set): is "deepseek-chat", which PART.provider auto does not use: write provider/model, or set PART.provider`},
		{"model=deepseek/deepseek-chat", ""},
		{"provider=deepseek model=deepseek-chat", ""},
		{"provider=EMBEDDED model=deepseek-chat", "model (from --set): is set, and PART.provider EMBEDDED uses no model: remove it, or set PART.provider"},
		{"provider=EMBEDDED model=deepseek/deepseek-chat", "model (from --set): is set, and PART.provider EMBEDDED uses no model"},
		{"provider=EMBEDDED endpoint=http://127.0.0.1:1/v1", ""},
		{"provider=EMBEDDED api_key=k", ""},
		{"provider=EMBEDDED api_key_file=/nowhere", ""},
		{"provider=EMBEDDED", ""},
		{"provider=gogle model=m", `provider (from --set): is "gogle", which is not a known provider`},
		{"provider=ollama", "model (from default): is required for ollama: set it"},
		{"model=ollama/", "model (from --set): is required for ollama: set it"},
		{"provider=gemini endpoint=nowhere", "endpoint (from --set): is not an http or https URL"},
	} {
		for part, embedded := range map[string]string{"embedding": "local", "decision": "rules", "summary": "rules", "digest": "rules"} {
			if part == "embedding" && c.want == "" { // deepseek has no embeddings of its own, and a name is a name
				continue
			}
			fill := strings.NewReplacer("PART", part, "EMBEDDED", embedded)
			flags := map[string]string{}
			for setting := range strings.FieldsSeq(fill.Replace(c.set)) {
				key, value, _ := strings.Cut(setting, "=")
				flags[part+"."+key] = value
			}
			_, err := Load(Sources{Environ: environ(), Flags: flags})
			switch {
			case c.want == "" && err != nil:
				t.Errorf("%v: %v", flags, err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), part+"."+fill.Replace(c.want))):
				t.Errorf("%v:\ngot  %v\nwant %s", flags, err, part+"."+fill.Replace(c.want))
			}
		}
	}
}

// TestDigestKeysWithoutAModelAreErrors: the digest follows the summary's model unless it names one, and what describes a model
// of its own is then ignored.
func TestDigestKeysWithoutAModelAreErrors(t *testing.T) {
	load := func(settings ...string) error {
		flags := map[string]string{}
		for _, setting := range settings {
			key, value, _ := strings.Cut(setting, "=")
			flags[key] = value
		}
		_, err := Load(Sources{Environ: environ(), Flags: flags})
		return err
	}
	for _, key := range []string{"endpoint=http://127.0.0.1:1/v1", "api_key=k", "api_key_file=/nowhere"} {
		name, _, _ := strings.Cut(key, "=")
		if err := load("digest."+key, "summary.model=ollama/m"); err == nil ||
			!strings.Contains(err.Error(), "digest."+name+" (from --set): is set, and digest.provider auto takes the model of summary") {
			t.Errorf("digest.%s: %v", key, err)
		}
		if err := load("digest."+key, "digest.model=openai/cheap"); err != nil {
			t.Errorf("digest.%s: %v", key, err)
		}
		// The others keep with auto what the database was made with, which needs them.
		for _, part := range []string{"embedding", "decision", "summary"} {
			if err := load(part + "." + key); err != nil {
				t.Errorf("%s.%s: %v", part, key, err)
			}
		}
	}
}

// TestEveryModelSectionNamesWhatIsEmbedded: a new section with a provider and a model cannot be left out of the checks.
func TestEveryModelSectionNamesWhatIsEmbedded(t *testing.T) {
	got := map[string]string{}
	for _, m := range modelsOf(defaults("")) {
		got[m.part] = m.embedded
	}
	for _, key := range Reference() {
		if section, ok := strings.CutSuffix(key.Key, ".model"); ok && got[section] == "" {
			t.Errorf("%s.model is not checked: its provider has no tag that says what is embedded", section)
		}
	}
}
