package logs_test

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/memsidecar/memsidecar/internal/observe/logs"
)

// TestLimit: A flood becomes a few lines that say how many were omitted. Other lines and debug lines are not affected.
func TestLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		log := slog.New(logs.Limit(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug})))
		child := log.With("consideration", "con_1")
		for i := range 1000 {
			child.Error("failed", "error", errors.New("away"), "try", i)
			log.Info("call", "method", "Retrieve", "code", "NotFound")
			log.Debug("detail")
		}
		log.Info("call", "method", "Retrieve", "code", "InvalidArgument")
		for text, want := range map[string]int{"msg=failed": 10, "code=NotFound": 10, "msg=detail": 1000, "code=InvalidArgument": 1, "left_out": 0} {
			if got := strings.Count(out.String(), text); got != want {
				t.Errorf("%q is written %d times, want %d", text, got, want)
			}
		}
		time.Sleep(time.Minute)
		out.Reset()
		log.Error("failed")
		log.Error("failed")
		if got := out.String(); strings.Count(got, "msg=failed") != 2 || strings.Count(got, "left_out=990") != 1 {
			t.Errorf("after a minute: %s", got)
		}
	})
}

// TestNewWritesFromALevelOn: The level and the format are those of the configuration.
func TestNewWritesFromALevelOn(t *testing.T) {
	for _, test := range []struct{ level, format, want string }{
		{"warn", "text", "level=WARN msg=seen"},
		{"warn", "json", `"level":"WARN","msg":"seen"`},
		{"unknown", "text", "level=INFO msg=hidden"},
	} {
		var out bytes.Buffer
		log := logs.New(&out, test.level, test.format)
		log.Info("hidden")
		log.Warn("seen")
		if got := out.String(); !strings.Contains(got, test.want) || (test.level == "warn") == strings.Contains(got, "hidden") {
			t.Errorf("%s as %s: %s", test.level, test.format, got)
		}
	}
}
