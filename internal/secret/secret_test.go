package secret_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/memsidecar/memsidecar/internal/secret"
)

const plain = "sk-plain/never+to\"be&shown"

type config struct {
	Key  secret.Value
	Keys map[string]secret.Value
}

// TestValueIsNeverShown: The value is hidden however it is printed, logged or encoded, alone or in a struct.
func TestValueIsNeverShown(t *testing.T) {
	key := secret.Value(plain)
	inside := config{Key: key, Keys: map[string]secret.Value{"a": key}}
	var shown []string
	for _, v := range []any{key, &key, inside, &inside, []secret.Value{key}} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%t", "%10.3s"} {
			shown = append(shown, fmt.Sprintf(verb, v))
		}
		var log bytes.Buffer
		slog.New(slog.NewJSONHandler(&log, nil)).Info("m", "v", v)
		slog.New(slog.NewTextHandler(&log, nil)).Info("m", "v", v)
		encoded, err := json.Marshal(v)
		if err != nil {
			t.Error(err)
		}
		asYAML, err := yaml.Marshal(v)
		if err != nil {
			t.Error(err)
		}
		shown = append(shown, log.String(), string(encoded), string(asYAML))
	}
	for _, text := range shown {
		if strings.Contains(text, "never") || strings.Contains(text, fmt.Sprintf("%x", "never")) || strings.Contains(text, fmt.Sprintf("%X", "never")) {
			t.Errorf("shown: %s", text)
		}
	}
	if key.Reveal() != plain {
		t.Errorf("revealed: %s", key.Reveal())
	}
	if got := fmt.Sprintf("%s|%v", secret.Value(""), config{}); got != "|{ map[]}" {
		t.Errorf("no key is shown as %q", got)
	}
}

// TestRedact: A key is found as it is, and in the forms of URLs and quotes.
func TestRedact(t *testing.T) {
	key := secret.Value(plain + "\n") // as in a file
	for _, text := range []string{
		plain, "https://h/?key=" + url.QueryEscape(plain), "https://h/" + url.PathEscape(plain), fmt.Sprintf("%q", plain), plain + plain,
	} {
		if got := key.Redact("before " + text + " after"); strings.Contains(got, "never") || !strings.HasPrefix(got, "before ") || !strings.HasSuffix(got, " after") {
			t.Errorf("%s became %s", text, got)
		}
	}
	for _, nothing := range []secret.Value{"", " "} {
		if got := nothing.Redact("a text"); got != "a text" {
			t.Errorf("without a key the text became %q", got)
		}
	}
}
