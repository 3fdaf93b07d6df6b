package config

import (
	"strings"

	"github.com/memsidecar/memsidecar/internal/secret"
	"github.com/memsidecar/memsidecar/internal/secret/seal"
)

// Encryption is how the database is encrypted.
type Encryption struct {
	Key     secret.Value `koanf:"key" secret:"true" doc:"key of the database, 32 bytes in base64; with one a new database is encrypted, and another is not opened"`
	KeyFile string       `koanf:"key_file" doc:"file that holds the key, as memsidecar key create makes it, instead of key"`
}

// Enabled reports whether there is to be a key.
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
