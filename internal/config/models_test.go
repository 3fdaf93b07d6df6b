package config

import (
	"strings"
	"testing"
)

// TestModelKeysThatCannotWorkAreErrors: A key that would be ignored, or that names an unknown model, is refused by the same rules for
// every part. Valid keys are accepted.
func TestModelKeysThatCannotWorkAreErrors(t *testing.T) {
	for _, c := range []struct {
		set  string // in each part's section
		want string // part of the message; "" if it is valid
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
			if part == "embedding" && c.want == "" { // deepseek has no embeddings of its own, and any model name is accepted
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

// TestDigestKeysWithoutAModelAreErrors: The digest uses the summary's model unless it names its own. Settings of a model of its own would
// then be ignored.
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
		// With auto, the other parts keep the database's model, which needs these keys.
		for _, part := range []string{"embedding", "decision", "summary"} {
			if err := load(part + "." + key); err != nil {
				t.Errorf("%s.%s: %v", part, key, err)
			}
		}
	}
}

// TestEveryModelSectionNamesWhatIsEmbedded: The checks cover every section that has a provider and a model.
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
