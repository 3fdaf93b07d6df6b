package sidecar

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"

	"github.com/memsidecar/memsidecar/internal/access"
	"github.com/memsidecar/memsidecar/internal/config"
	"github.com/memsidecar/memsidecar/internal/listen"
	"github.com/memsidecar/memsidecar/internal/server"
)

// security decides who may call, and how connections are encrypted.
type security struct {
	tokens *access.Tokens // nil: every caller is allowed
	tls    *listen.TLS    // nil: connections are not encrypted
}

// openSecurity reads the files of tokens and certificates. Its errors name the key of the configuration.
func openSecurity(cfg *config.Config, log *slog.Logger) (*security, error) {
	e := &security{}
	var errs []error
	if file := cfg.Auth.TokensFile; file != "" {
		var err error
		e.tokens, err = access.Open(file, func(tokens int, err error) {
			if err != nil {
				log.Error("tokens cannot be read again: those from before still hold, revoked ones included", "file", file, "error", err)
				return
			}
			log.Info("tokens were read again", "file", file, "tokens", tokens)
		})
		if err != nil {
			errs = append(errs, fmt.Errorf("auth.tokens_file: %w", err))
		}
	}
	if of := cfg.TLS; of.Enabled() {
		var err error
		e.tls, err = listen.OpenTLS(listen.Files{Cert: of.CertFile, Key: of.KeyFile, ClientCA: of.ClientCAFile}, func(err error) {
			if err != nil {
				log.Error("certificates cannot be read again: those from before are still in use", "file", of.CertFile, "error", err)
				return
			}
			log.Info("certificates were read again", "file", of.CertFile)
		})
		if err != nil {
			errs = append(errs, fmt.Errorf("tls: %w", err))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, ConfigError{err}
	}
	return e, nil
}

// authenticator returns nil when every caller is allowed.
func (e *security) authenticator() server.Authenticator {
	if e.tokens == nil {
		return nil
	}
	return e.tokens
}

// config is that of encrypted connections, or nil.
func (e *security) config() *tls.Config {
	if e.tls == nil {
		return nil
	}
	return e.tls.Config()
}

// reloadable reports whether there are files to read again.
func (e *security) reloadable() bool { return e.tokens != nil || e.tls != nil }

// reload reads the files now; how that went is logged.
func (e *security) reload() {
	if e.tokens != nil {
		_ = e.tokens.Reload()
	}
	if e.tls != nil {
		_ = e.tls.Reload()
	}
}

// openListener listens on the configured address.
func openListener(ctx context.Context, cfg *config.Config) (net.Listener, error) {
	mode, err := listen.ParseMode(cfg.SocketMode)
	if err != nil {
		return nil, err
	}
	listener, err := listen.Listen(ctx, cfg.Listen, mode)
	if err != nil {
		return nil, fmt.Errorf("cannot listen on %s: %w; choose another address with --listen", cfg.Listen, err)
	}
	return listener, nil
}

// limiter bounds how often each namespace and each user calls.
func limiter(cfg *config.Config) *access.Limiter {
	l := cfg.Limits
	return access.NewLimiter(
		access.Rate{PerSecond: l.NamespaceRPS, Burst: l.NamespaceBurst},
		access.Rate{PerSecond: l.UserRPS, Burst: l.UserBurst},
	)
}
