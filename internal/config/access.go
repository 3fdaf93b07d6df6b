package config

import (
	"strings"

	"github.com/memsidecar/memsidecar/internal/listen"
)

// TLS are the files of an encrypted connection. They are read again when they change.
type TLS struct {
	CertFile     string `koanf:"cert_file" doc:"certificate (PEM, with its chain); with key_file all connections are encrypted"`
	KeyFile      string `koanf:"key_file" doc:"private key of cert_file (PEM)"`
	ClientCAFile string `koanf:"client_ca_file" doc:"authorities (PEM) of clients' certificates; when set, only clients with such a certificate may connect"`
}

// Enabled reports whether connections are encrypted.
func (t TLS) Enabled() bool { return t.CertFile != "" }

// Auth is who may call.
type Auth struct {
	TokensFile string `koanf:"tokens_file" doc:"tokens, as memsidecar token create writes them; when set, calls need one; it is read again when it changes"`
}

// Limits is how much anybody may ask for.
type Limits struct {
	NamespaceRPS   float64 `koanf:"namespace_rps" min:"0" max:"1000000" doc:"calls a second of a namespace, beyond which they are refused; 0 is any number"`
	NamespaceBurst int     `koanf:"namespace_burst" min:"0" max:"1000000" doc:"calls of a namespace at once after a pause; 0 is those of a second"`
	UserRPS        float64 `koanf:"user_rps" min:"0" max:"1000000" doc:"calls a second about a user, beyond which they are refused; 0 is any number"`
	UserBurst      int     `koanf:"user_burst" min:"0" max:"1000000" doc:"calls about a user at once after a pause; 0 is those of a second"`

	NamespaceMemories     int64 `koanf:"namespace_memories" min:"0" max:"1000000000000" doc:"memories of a namespace, history included, beyond which no more are stored; 0 is any number"`
	NamespaceHistoryBytes int64 `koanf:"namespace_history_bytes" min:"0" max:"1000000000000000" doc:"bytes of the messages in a namespace's sessions, beyond which no more are stored; 0 is any number"`
	UserHistoryBytes      int64 `koanf:"user_history_bytes" min:"0" max:"1000000000000000" doc:"bytes of the messages that a user said and was answered, beyond which no more are stored; 0 is any number"`
	NamespaceLists        int64 `koanf:"namespace_lists" min:"0" max:"1000000000" doc:"numbered lists of a namespace, kept and being shown, beyond which no new ones are stored: so many of each; 0 is any number"`
	UserLists             int64 `koanf:"user_lists" min:"0" max:"1000000000" doc:"the same for each user"`
}

// validateAccess checks where the sidecar listens and who may call.
func (c *Config) validateAccess(check func(key, problem, fix string)) {
	check("listen", listen.Problem(c.Listen), "use host:port, such as 127.0.0.1:7420, or unix: with an absolute path")
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
		check("tls.cert_file", "is missing, and clients' certificates need TLS", "name the sidecar's certificate, and its key as tls.key_file")
	}
	if problem, fix := c.exposure(c.Listen); problem != "" {
		check("listen", problem, fix)
	}
}

// exposure says whether memories would be open to whoever reaches the address, or "", and what to do. Clients' certificates
// are as good as tokens for that: who has none gets no connection.
func (c *Config) exposure(address string) (problem, fix string) {
	if c.Insecure || listen.Problem(address) != "" || listen.Local(address) || c.protection() == "" {
		return "", ""
	}
	return "is reached from outside of this machine, where everybody could read and delete all memories",
		"set " + c.protection() + "; or listen on 127.0.0.1 or a Unix socket; or say --insecure (insecure: true) " +
			"when the network keeps others out"
}

// protection is what an address outside of loopback lacks.
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
