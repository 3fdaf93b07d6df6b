package sidecar

import (
	"log/slog"
	"net"

	"github.com/memsidecar/memsidecar/internal/access"
	"github.com/memsidecar/memsidecar/internal/config"
	"github.com/memsidecar/memsidecar/internal/listen"
	"github.com/memsidecar/memsidecar/internal/secret/seal"
)

// warn logs settings that an operator may not have intended.
func (s *Sidecar) warn(cfg *config.Config, log *slog.Logger) {
	tokens, file := s.security.tokens, cfg.Auth.TokensFile
	switch {
	case tokens == nil:
	case tokens.Count() == 0:
		log.Warn("the token file is empty, so every call is refused: create a token with memsidecar token create", "file", file)
	case access.WorldReadable(file):
		log.Warn("every user of this machine can read the token file: run chmod 600 on it", "file", file)
	}
	for _, addr := range []net.Addr{s.Addr, s.APIAddr} {
		if addr == nil || listen.IsLocal(addr.String()) {
			continue
		}
		if s.security.tls == nil || tokens == nil && cfg.TLS.ClientCAFile == "" {
			log.Warn("insecure is set: the sidecar listens outside of loopback without TLS or without authentication; anyone who can connect "+
				"to this address or read its traffic can read and delete all memories", "address", addr.String())
		}
	}
	if file := cfg.Encryption.KeyFile; file != "" && seal.WorldReadable(file) {
		log.Warn("every user of this machine can read the encryption key: run chmod 600 on it", "file", file)
	}
	if cfg.Encryption.Enabled() && cfg.Digest.ExportDir != "" {
		log.Warn("the database is encrypted, but the exported files of digests and notebooks are not", "folder", cfg.Digest.ExportDir)
	}
}
