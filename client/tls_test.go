package client_test

import (
	"crypto/tls"
	"crypto/x509"
	"os"
	"testing"
)

// trustingConfig is a configuration for memsidecar.test, with a certificate of a private authority.
func trustingConfig(t *testing.T, file string) *tls.Config {
	t.Helper()
	pem, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		t.Fatalf("%s has no certificate", file)
	}
	return &tls.Config{RootCAs: pool, ServerName: "memsidecar.test", MinVersion: tls.VersionTLS12}
}
