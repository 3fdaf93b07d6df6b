package main

import (
	"strings"
	"testing"

	"github.com/memsidecar/memsidecar/cmd/memsidecar/internal/cli"
	"github.com/memsidecar/memsidecar/internal/testkit/sidecartest"
)

// TestAPIAddressIsValidated: As for gRPC, an address outside of loopback needs encryption and tokens.
func TestAPIAddressIsValidated(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ settings, says string }{
		{"api.listen=0.0.0.0:0", "api.listen: is reached from outside of this machine"},
		{"api.listen=somewhere", "api.listen: is \"somewhere\""},
		{"api.listen=unix:s", "api.listen: is \"unix:s\", which is not an absolute path"},
		{"api.mcp=true", "api.mcp: is on without a port"},
		{"api.listen=127.0.0.1:0 api.mcp_user=u", "api.mcp_user: is set, and api.mcp is off"},
		{"api.listen=0.0.0.0:0 insecure=true", ""},
		{"api.listen=127.0.0.1:0 api.mcp=true api.mcp_user=u", ""},
	} {
		args := []string{"config", "check"}
		for setting := range strings.FieldsSeq(test.settings) {
			args = append(args, "--set", setting)
		}
		code, _, errs := runMain(t, args...)
		if (code == 0) != (test.says == "") || !strings.Contains(strings.ReplaceAll(errs, " (from --set)", ""), test.says) {
			t.Errorf("%s: exit code %d, %s", test.settings, code, errs)
		}
	}
}

// TestWrongModelSettingsAreReportedTogether: At start, all mistakes that can be found without a key are reported together, then the rest
// together.
func TestWrongModelSettingsAreReportedTogether(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ set, want []string }{
		{
			[]string{"embedding.provider=gogle", "summary.model=ollama/", "digest.model=deepseek-chat", "decision.provider=rules", "decision.model=gpt-4o-mini"},
			[]string{
				"embedding.provider", `"gogle"`, "deepseek", "summary.model (from --set): is required",
				`digest.model (from --set): is "deepseek-chat"`, "decision.model (from --set): is set",
			},
		},
		{
			[]string{"decision.provider=openai", "decision.prompt=no placeholder"},
			[]string{"set OPENAI_API_KEY", "decision.prompt", "{conversation}"},
		},
	} {
		out := &sidecartest.Log{}
		var args []string
		for _, setting := range c.set {
			args = append(args, "--set", setting)
		}
		code := Main{Args: append(args, "--data-dir", t.TempDir(), "serve"), Stdout: out, Stderr: out}.Run(t.Context())
		if code != cli.ExitUsage {
			t.Errorf("%q: ended with %d", c.set, code)
		}
		for _, want := range c.want {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%q: does not say %q:\n%s", c.set, want, out)
			}
		}
	}
}

// TestHTTPAddressIsValidated: The port is for this machine unless the operator configures otherwise. Profiles never leave it.
func TestHTTPAddressIsValidated(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ settings, says string }{
		{"http.listen=0.0.0.0:0", "http.listen: is 0.0.0.0:0, outside of loopback"},
		{"http.listen=:7421", "set http.allow_remote"},
		{"http.listen=somewhere", "http.listen: is \"somewhere\""},
		{"http.listen=0.0.0.0:0 http.allow_remote=true http.pprof=true", "http.pprof: is on, and http.listen, 0.0.0.0:0, is outside of loopback"},
		{"http.pprof=true", "http.pprof: is on without a port"},
		{"otel.endpoint=127.0.0.1:4317", "otel.endpoint: is \"127.0.0.1:4317\": use a URL"},
		{"http.listen=0.0.0.0:0 http.allow_remote=true", ""},
		{"http.listen=[::1]:0 http.pprof=true", ""},
		{"http.listen=localhost:0", ""},
	} {
		args := []string{"config", "check"}
		for setting := range strings.FieldsSeq(test.settings) {
			args = append(args, "--set", setting)
		}
		code, _, errs := runMain(t, args...)
		if (code == 0) != (test.says == "") || !strings.Contains(strings.ReplaceAll(errs, " (from --set)", ""), test.says) {
			t.Errorf("%s: exit code %d, %s", test.settings, code, errs)
		}
	}
}

// TestSecondSidecarIsRefused: A second sidecar on the same folder or port is refused with that reason.
func TestSecondSidecarIsRefused(t *testing.T) {
	t.Parallel()
	r := sidecartest.Serve(t)
	for name, test := range map[string]struct {
		listen, dir, says string
	}{
		"folder": {"127.0.0.1:0", r.Dir, "another memsidecar uses this data folder"},
		"port":   {r.Addr, t.TempDir(), "cannot listen on " + r.Addr},
		"both":   {r.Addr, r.Dir, "cannot listen on " + r.Addr},
	} {
		code, out, errs := runMain(t, "serve", "--listen", test.listen, "--data-dir", test.dir)
		if code != cli.ExitFailure || !strings.Contains(errs, test.says) || out != "" {
			t.Errorf("%s: exit code %d, said %q and %q", name, code, out, errs)
		}
	}
	if c := r.Consider(t, sidecartest.Direct("u"), sidecartest.Said("I am allergic to peanuts.")); c.GetState() != sidecartest.Remembered {
		t.Errorf("the first one is disturbed: %s", c)
	}
}

func TestWrongRedactionSettingsAreReported(t *testing.T) {
	t.Parallel()
	for setting, want := range map[string]string{
		"redact.kinds=phone":                       "use account_number, api_key, card_number",
		"history.redact=true,redact.enabled=false": "switch both on",
	} {
		log := &sidecartest.Log{}
		args := []string{"--data-dir", t.TempDir()}
		for part := range strings.SplitSeq(setting, ",") {
			args = append(args, "--set", part)
		}
		code := Main{Args: append(args, "config", "check"), Stdout: log, Stderr: log}.Run(t.Context())
		if code == 0 || !strings.Contains(log.String(), want) {
			t.Errorf("%s: %d\n%s", setting, code, log)
		}
	}
}
