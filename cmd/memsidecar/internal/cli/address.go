package cli

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/memsidecar/memsidecar/internal/listen"
)

// address returns the sidecar's address, from the flag or the configuration, which also names its certificate.
func (f sidecarFlag) address(p *Program) (Sidecar, error) {
	if f.Addr != "" {
		if err := checkAddress(f.Addr); err != nil {
			return Sidecar{}, usage("--addr %s: %v", f.Addr, err)
		}
		return Sidecar{Listen: f.Addr}, nil
	}
	configured, err := p.Sidecar()
	if err != nil {
		return configured, fmt.Errorf("%w\n(the configuration has the address of the sidecar; --addr overrides it)", err)
	}
	if _, ok := listen.SocketPath(configured.Listen); ok {
		return configured, nil
	}
	host, port, err := net.SplitHostPort(configured.Listen)
	if err != nil || port == "0" {
		return configured, usage("the sidecar is configured to listen on %s: pass its address with --addr", configured.Listen)
	}
	// A server on all addresses also listens on loopback.
	if ip, err := netip.ParseAddr(host); host == "" || err == nil && ip == netip.IPv4Unspecified() {
		host = "127.0.0.1"
	} else if err == nil && ip == netip.IPv6Unspecified() {
		host = "::1"
	}
	configured.Listen = net.JoinHostPort(host, port)
	return configured, nil
}

// checkAddress returns an error unless addr is HOST:PORT or unix:PATH.
func checkAddress(addr string) error {
	if path, ok := listen.SocketPath(addr); ok && path != "" {
		return nil
	}
	host, port, err := net.SplitHostPort(addr)
	if err == nil && host != "" && port != "" && port != "0" {
		return nil
	}
	return errors.New("write HOST:PORT, for example 127.0.0.1:7420, or unix:/path")
}

// encryption returns the TLS configuration, or nil.
func (f sidecarFlag) encryption(to Sidecar) (credentials.TransportCredentials, bool, error) {
	flags := f.TLS || f.CA != "" || f.Cert != "" || f.Key != "" || f.ServerName != ""
	if !flags && to.CertFile == "" {
		return insecure.NewCredentials(), false, nil
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	var err error
	switch {
	case f.CA != "":
		if config.RootCAs, err = listen.LoadCertPool(f.CA); err != nil {
			return nil, false, usage("--ca: %v", err)
		}
	case to.CertFile != "" && f.ServerName == "":
		if config, err = listen.PinnedConfig(to.CertFile); err != nil {
			return nil, false, usage("tls.cert_file: %v", err)
		}
	}
	config.ServerName = f.ServerName
	if (f.Cert == "") != (f.Key == "") {
		return nil, false, usage("--cert and --key must be used together")
	}
	if f.Cert != "" {
		certificate, err := tls.LoadX509KeyPair(f.Cert, f.Key)
		if err != nil {
			return nil, false, usage("--cert %s with --key %s: %v", f.Cert, f.Key, err)
		}
		config.Certificates = []tls.Certificate{certificate}
	}
	if config.ServerName == "" {
		if host, _, err := net.SplitHostPort(to.Listen); err == nil {
			config.ServerName = host
		}
	}
	return credentials.NewTLS(config), true, nil
}

// token returns the token, or "".
func (f sidecarFlag) token() (string, error) {
	if f.Token != "" || f.TokenFile == "" {
		return f.Token, nil
	}
	text, err := os.ReadFile(f.TokenFile)
	if err != nil {
		return "", usage("--token-file: %v", err)
	}
	token := strings.TrimSpace(string(text))
	if token == "" || strings.ContainsAny(token, " \t\r\n") {
		return "", usage("--token-file %s: the file must hold exactly one token", f.TokenFile)
	}
	return token, nil
}

// bearer adds the token to every call.
type bearer string

// GetRequestMetadata implements credentials.PerRPCCredentials.
func (b bearer) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{"authorization": "Bearer " + string(b)}, nil
}

// RequireTransportSecurity implements credentials.PerRPCCredentials. Loopback and Unix sockets need no encryption; for other addresses
// dial prints a warning.
func (bearer) RequireTransportSecurity() bool { return false }
