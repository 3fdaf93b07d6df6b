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

// Files are the paths of the PEM files for TLS.
type Files struct {
	// Cert is the sidecar's certificate with its chain, Key its private key.
	Cert, Key string
	// ClientCA has the authorities that sign clients' certificates; "" means that clients need none.
	ClientCA string
}

// TLS is a TLS configuration that follows its files.
type TLS struct{ files *reload.Files[*tls.Config] }

// OpenTLS reads the files. report is called with nil after they were read again, and with the error when that fails. After an error the
// previous files stay in use, so a certificate and its key can be replaced one after the other.
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

// Config returns the configuration for a server: each new connection uses the newest files.
func (t *TLS) Config() *tls.Config {
	return &tls.Config{
		MinVersion:         tls.VersionTLS12, // clients that support 1.3 use it
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return t.files.Get(), nil },
	}
}

// HTTPConfig is Config for an HTTP server, which also supports HTTP/1.1.
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
		if config.ClientCAs, err = LoadCertPool(f.ClientCA); err != nil {
			return nil, err
		}
		config.ClientAuth = tls.RequireAndVerifyClientCert
	}
	return config, nil
}

// LoadCertPool reads the certificates of authorities.
func LoadCertPool(path string) (*x509.CertPool, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s contains no certificate in PEM format", path)
	}
	return pool, nil
}

// PinnedConfig returns a client configuration that trusts only the certificate in a file. A program that reads the sidecar's configuration needs
// neither an authority nor a name for an address such as 127.0.0.1.
func PinnedConfig(path string) (*tls.Config, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(text)
	if block == nil || block.Type != "CERTIFICATE" {
		return nil, fmt.Errorf("%s must begin with a certificate in PEM format", path)
	}
	return &tls.Config{
		MinVersion:         tls.VersionTLS12,
		InsecureSkipVerify: true, //nolint:gosec // VerifyConnection is stricter: it requires this certificate
		VerifyConnection: func(state tls.ConnectionState) error {
			if len(state.PeerCertificates) == 0 || !bytes.Equal(state.PeerCertificates[0].Raw, block.Bytes) {
				return errors.New("the certificate is not the one of tls.cert_file")
			}
			return nil
		},
	}, nil
}
