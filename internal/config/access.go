package config

import (
	"strings"

	"github.com/memsidecar/memsidecar/internal/listen"
)

// TLS configures encrypted connections. The files are read again when they change.
type TLS struct {
	CertFile     string `koanf:"cert_file"`
	KeyFile      string `koanf:"key_file"`
	ClientCAFile string `koanf:"client_ca_file"`
}

// Enabled reports whether connections are encrypted.
func (t TLS) Enabled() bool { return t.CertFile != "" }

// Auth configures who may call.
type Auth struct {
	TokensFile string `koanf:"tokens_file"`
}

// Limits configures rate limits and quotas.
type Limits struct {
	NamespaceRPS   float64 `koanf:"namespace_rps" min:"0" max:"1000000"`
	NamespaceBurst int     `koanf:"namespace_burst" min:"0" max:"1000000"`
	UserRPS        float64 `koanf:"user_rps" min:"0" max:"1000000"`
	UserBurst      int     `koanf:"user_burst" min:"0" max:"1000000"`

	NamespaceMemories     int64 `koanf:"namespace_memories" min:"0" max:"1000000000000"`
	NamespaceHistoryBytes int64 `koanf:"namespace_history_bytes" min:"0" max:"1000000000000000"`
	UserHistoryBytes      int64 `koanf:"user_history_bytes" min:"0" max:"1000000000000000"`
	NamespaceLists        int64 `koanf:"namespace_lists" min:"0" max:"1000000000"`
	UserLists             int64 `koanf:"user_lists" min:"0" max:"1000000000"`
}

// validateAccess checks where the sidecar listens and who may call.
func (c *Config) validateAccess(check func(key, problem, fix string)) {
	check("listen", listen.AddressProblem(c.Listen), "use host:port, such as 127.0.0.1:7420, or unix: with an absolute path")
	if _, err := listen.ParseMode(c.SocketMode); err != nil {
		check("socket_mode", "is no file mode", `use three octal digits, such as "0660" or "0600"`)
	}
	for _, file := range []struct{ key, path string }{
		{"tls.cert_file", c.TLS.CertFile},
		{"tls.key_file", c.TLS.KeyFile},
		{"tls.client_ca_file", c.TLS.ClientCAFile},
		{"auth.tokens_file", c.Auth.TokensFile},
	} {
		if strings.HasPrefix(file.path, "~") {
			check(file.key, "begins with ~, which only a shell knows", "write the home folder out")
		}
	}
	switch {
	case c.TLS.CertFile != "" && c.TLS.KeyFile == "":
		check("tls.key_file", "is missing, and there is a tls.cert_file", "name the private key of that certificate")
	case c.TLS.CertFile == "" && c.TLS.KeyFile != "":
		check("tls.cert_file", "is missing, and there is a tls.key_file", "name the certificate of that key")
	case c.TLS.CertFile == "" && c.TLS.ClientCAFile != "":
		check(
			"tls.cert_file",
			"is missing, and clients' certificates need TLS",
			"name the sidecar's certificate, and its key as tls.key_file",
		)
	}
	if problem, fix := c.exposure(c.Listen); problem != "" {
		check("listen", problem, fix)
	}
}

// exposure describes why anyone who can connect to the address could read memories, and what to do about it; "" when they could not. Clients' certificates
// are as good as tokens for that: who has none gets no connection.
func (c *Config) exposure(address string) (problem, fix string) {
	if c.Insecure || listen.AddressProblem(address) != "" || listen.IsLocal(address) || c.protection() == "" {
		return "", ""
	}
	return "is reached from outside of this machine, where everybody could read and delete all memories",
		"set " + c.protection() + "; or listen on 127.0.0.1 or a Unix socket; or say --insecure (insecure: true) " +
			"when the network keeps others out"
}

// protection describes what an address outside of loopback lacks.
func (c *Config) protection() string {
	var missing []string
	if !c.TLS.Enabled() {
		missing = append(missing, "tls.cert_file and tls.key_file")
	}
	if c.Auth.TokensFile == "" && c.TLS.ClientCAFile == "" {
		missing = append(missing, "auth.tokens_file (memsidecar token create makes one)")
	}
	return strings.Join(missing, ", and ")
}
