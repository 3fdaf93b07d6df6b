package sidecar_test

import (
	"os"
	"testing"

	"github.com/memsidecar/memsidecar/internal/testkit/sidecartest"
)

func TestMain(m *testing.M) { os.Exit(sidecartest.Main(m)) }
