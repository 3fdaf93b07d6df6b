package config

import (
	"strings"

	"github.com/memsidecar/memsidecar/internal/secret"
	"github.com/memsidecar/memsidecar/internal/secret/seal"
)

// Encryption configures the encryption of the database.
type Encryption struct {
	Key     secret.Value `koanf:"key" secret:"true"`
	KeyFile string       `koanf:"key_file"`
}

// Enabled reports whether a key is configured.
func (e Encryption) Enabled() bool { return e.Key != "" || e.KeyFile != "" }

func (e Encryption) validate(check func(key, problem, fix string)) {
	if strings.HasPrefix(e.KeyFile, "~") {
		check("encryption.key_file", "begins with ~, which only a shell knows", "write the home folder out")
	}
	if e.Key == "" {
		return
	}
	if e.KeyFile != "" {
		check("encryption.key", "is set, and encryption.key_file is, too", "set one of them")
	}
	if _, err := seal.ParseKey(e.Key.Reveal()); err != nil {
		check("encryption.key", "is no key", "set 32 random bytes in base64, as memsidecar key create makes them")
	}
}
