package listen

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"

	"github.com/memsidecar/memsidecar/internal/listen/reload"
)

// Files are the PEM files of TLS.
type Files struct {
	// Cert is the sidecar's certificate with the chain below it, Key its private key.
	Cert, Key string
	// ClientCA are the authorities of clients' certificates; "" asks for none.
	ClientCA string
}

// TLS is a configuration of TLS that follows its files.
type TLS struct{ files *reload.Files[*tls.Config] }

// OpenTLS reads the files. report is told when they are read anew (nil) and when that fails; until it succeeds those read
// before are in use, so a certificate and a key that are replaced one after the other do no harm.
func OpenTLS(of Files, report func(error)) (*TLS, error) {
	paths := []string{of.Cert, of.Key}
	if of.ClientCA != "" {
		paths = append(paths, of.ClientCA)
	}
	files, err := reload.Open(paths, of.config, report)
	if err != nil {
		return nil, err
	}
	return &TLS{files}, nil
}

// Reload reads the files now.
func (t *TLS) Reload() error { return t.files.Reload() }

// Config is what a server uses: each new connection gets the newest files.
func (t *TLS) Config() *tls.Config {
	return &tls.Config{
		MinVersion:         tls.VersionTLS12, // a client that knows 1.3 gets it
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return t.files.Get(), nil },
	}
}

// HTTPConfig is Config for a server of HTTP, which also speaks HTTP/1.1.
func (t *TLS) HTTPConfig() *tls.Config {
	protocols := []string{"h2", "http/1.1"}
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		NextProtos: protocols,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			config := t.files.Get().Clone()
			config.NextProtos = protocols
			return config, nil
		},
	}
}

func (f Files) config() (*tls.Config, error) {
	certificate, err := tls.LoadX509KeyPair(f.Cert, f.Key)
	if err != nil {
		return nil, fmt.Errorf("the certificate %s with the key %s: %w", f.Cert, f.Key, err)
	}
	config := &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12, NextProtos: []string{"h2"}}
	if f.ClientCA != "" {
		if config.ClientCAs, err = Pool(f.ClientCA); err != nil {
			return nil, err
		}
		config.ClientAuth = tls.RequireAndVerifyClientCert
	}
	return config, nil
}

// Pool reads the certificates of authorities.
func Pool(path string) (*x509.CertPool, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s holds no certificate in PEM format", path)
	}
	return pool, nil
}

// Pinned is a configuration of a client that trusts exactly the certificate of a file: who reads the sidecar's configuration
// knows it, and needs neither an authority nor a name to go with an address such as 127.0.0.1.
func Pinned(path string) (*tls.Config, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(text)
	if block == nil || block.Type != "CERTIFICATE" {
		return nil, fmt.Errorf("%s does not begin with a certificate in PEM format", path)
	}
	return &tls.Config{
		MinVersion:         tls.VersionTLS12,
		InsecureSkipVerify: true, //nolint:gosec // VerifyConnection asks for more than a chain: this very certificate
		VerifyConnection: func(state tls.ConnectionState) error {
			if len(state.PeerCertificates) == 0 || !bytes.Equal(state.PeerCertificates[0].Raw, block.Bytes) {
				return errors.New("the certificate is not the one of tls.cert_file")
			}
			return nil
		},
	}, nil
}
