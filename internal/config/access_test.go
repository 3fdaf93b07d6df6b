package config

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

// TestExposure: Outside of loopback both encryption and authentication are required. The message names the missing settings.
func TestExposure(t *testing.T) {
	const cert, key, ca, tokens = "tls.cert_file", "tls.key_file", "tls.client_ca_file", "auth.tokens_file"
	for _, test := range []struct {
		listen  string
		set     []string
		missing []string // nil if it is allowed
	}{
		{"127.0.0.1:1", nil, nil},
		{"unix:/run/s", nil, nil},
		{"localhost:1", []string{tokens}, nil},
		{"0.0.0.0:1", nil, []string{cert, key, tokens, "--insecure"}},
		{":1", []string{tokens}, []string{cert}},
		{"[::]:1", []string{cert, key}, []string{tokens}},
		{"10.0.0.1:1", []string{cert, key, tokens}, nil},
		{"10.0.0.1:1", []string{cert, key, ca}, nil},
		{"10.0.0.1:1", []string{"insecure"}, nil},
	} {
		flags := map[string]string{"listen": test.listen, "data_dir": "/d"}
		for _, k := range test.set {
			flags[k] = "/etc/" + k
		}
		if slices.Contains(test.set, "insecure") {
			flags["insecure"] = "true"
		}
		_, err := Load(Sources{Flags: flags})
		if (err != nil) != (test.missing != nil) {
			t.Errorf("%s with %q: %v", test.listen, test.set, err)
		}
		for _, name := range test.missing {
			if err == nil || !strings.Contains(err.Error(), name) {
				t.Errorf("%s with %q: %v, want %s", test.listen, test.set, err, name)
			}
		}
		for _, have := range test.set {
			if err != nil && strings.Contains(err.Error(), "set "+have) {
				t.Errorf("%s with %q: reports a setting that is present: %v", test.listen, test.set, err)
			}
		}
	}
}

func TestAccessKeys(t *testing.T) {
	for key, flags := range map[string]map[string]string{
		"tls.key_file":     {"tls.cert_file": "c"},
		"tls.cert_file":    {"tls.key_file": "k"},
		"socket_mode":      {"socket_mode": "rwx"},
		"listen":           {"listen": "unix:relative"},
		"auth.tokens_file": {"auth.tokens_file": "~/tokens"},
		"limits.user_rps":  {"limits.user_rps": "-1"},
	} {
		flags["data_dir"] = "/d"
		_, err := Load(Sources{Flags: flags})
		wrong, ok := errors.AsType[*InvalidError](err)
		if !ok || !slices.ContainsFunc(wrong.Problems, func(p Problem) bool { return p.Key == key }) {
			t.Errorf("%v: %v", flags, err)
		}
	}
	if _, err := Load(Sources{Flags: map[string]string{"data_dir": "/d", "tls.client_ca_file": "a"}}); err == nil {
		t.Error("clients' certificates are asked for without TLS")
	}
	mustLoad(t, Sources{Flags: map[string]string{"data_dir": "/d"}, Environ: []string{
		"MEMSIDECAR_TOKEN=t", "MEMSIDECAR_TOKEN_FILE=f", "MEMSIDECAR_TLS=true", "MEMSIDECAR_CA=c", "MEMSIDECAR_CERT=c", "MEMSIDECAR_KEY=k",
		"MEMSIDECAR_SERVER_NAME=n", // a setting of the clients in cmd
	}})
}
