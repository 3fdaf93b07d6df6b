package main

import (
	"bytes"
	"database/sql"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/memsidecar/memsidecar/cmd/memsidecar/internal/cli"
	"github.com/memsidecar/memsidecar/internal/sqlite"
	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"
)

const databaseFile = "memsidecar.db"

// outages are ways in which a data folder cannot be used, each with what an operator does about it.
var outages = map[string]struct {
	cause, cure func(t *testing.T, dir string)
	reason      string
}{
	"corrupt": {
		func(t *testing.T, dir string) {
			t.Helper()
			mustDo(t, os.MkdirAll(dir, 0o700))
			mustDo(t, os.WriteFile(filepath.Join(dir, databaseFile), bytes.Repeat([]byte("no database "), 1000), 0o600))
		},
		func(t *testing.T, dir string) { t.Helper(); mustDo(t, os.Remove(filepath.Join(dir, databaseFile))) },
		"not a database",
	},
	"of a newer version": {
		func(t *testing.T, dir string) {
			t.Helper()
			withStorage(t, dir, func(*sqlite.Storage) {})
			execute(t, dir, `INSERT INTO goose_db_version (version_id, is_applied) VALUES (9999, 1)`)
		},
		func(t *testing.T, dir string) {
			t.Helper()
			execute(t, dir, `DELETE FROM goose_db_version WHERE version_id = 9999`)
		},
		"newer version of memsidecar",
	},
	"a file instead of a folder": {
		func(t *testing.T, dir string) { t.Helper(); mustDo(t, os.WriteFile(dir, []byte("a file"), 0o600)) },
		func(t *testing.T, dir string) { t.Helper(); mustDo(t, os.Remove(dir)) },
		"not a directory",
	},
}

func mustDo(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// execute changes the database behind the sidecar's back.
func execute(t *testing.T, dir, statement string) {
	t.Helper()
	db := must(sql.Open("sqlite", "file:"+filepath.Join(dir, databaseFile)+"?_pragma=busy_timeout(5000)"))(t)
	_, err := db.ExecContext(t.Context(), statement)
	mustDo(t, err)
	mustDo(t, db.Close())
}

// TestOutage: a database that cannot be used does not keep the bot from going on, and nothing has to be restarted.
func TestOutage(t *testing.T) {
	for name, outage := range outages {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // each waits for the next attempt to open the database
			dir := filepath.Join(t.TempDir(), "data")
			outage.cause(t, dir)
			r := serveIn(t, dir)
			health := healthpb.NewHealthClient(r.conn)
			if got := must(health.Check(t.Context(), &healthpb.HealthCheckRequest{}))(t).GetStatus(); got != healthpb.HealthCheckResponse_SERVING {
				t.Errorf("overall health is %s", got)
			}
			storage := must(health.Watch(t.Context(), &healthpb.HealthCheckRequest{Service: "storage"}))(t)
			if got := must(storage.Recv())(t).GetStatus(); got != healthpb.HealthCheckResponse_NOT_SERVING {
				t.Errorf("storage's health is %s", got)
			}
			wantDegraded(t, r, outage.reason)

			outage.cure(t, dir)
			if got := must(storage.Recv())(t).GetStatus(); got != healthpb.HealthCheckResponse_SERVING {
				t.Fatalf("then storage's health is %s", got)
			}
			if c := r.consider(t, direct("u"), said("I am allergic to peanuts.")); c.GetState() != remembered {
				t.Errorf("after the outage: %s", c)
			}
			resp := r.recalled(t, &memsidecarv1.RetrieveRequest{Scope: direct("u"), Query: "peanuts"})
			if len(resp.GetMemories()) != 1 {
				t.Errorf("after the outage: %s", resp)
			}
			status := must(r.GetStatus(t.Context(), &memsidecarv1.GetStatusRequest{}))(t)
			if c := component(status, "storage"); c.GetBreaker() != memsidecarv1.BreakerState_BREAKER_STATE_CLOSED || c.GetReason() != "" || status.GetQueue() == nil {
				t.Errorf("after the outage: %s", status)
			}
			r.stop()
			for text, want := range map[string]int{"circuit breaker opened": 1, "circuit breaker closed": 1, "level=WARN": 1, "level=ERROR": 0} {
				if got := strings.Count(r.log.String(), text); got != want {
					t.Errorf("%q is logged %d times, want %d:\n%s", text, got, want, r.log)
				}
			}
		})
	}
}

// componentsOf are storage and what models may do.
func componentsOf(status *memsidecarv1.GetStatusResponse) []*memsidecarv1.ComponentStatus {
	return append([]*memsidecarv1.ComponentStatus{status.GetStorage().GetComponent()}, status.GetModels().GetComponents()...)
}

func component(status *memsidecarv1.GetStatusResponse, name string) *memsidecarv1.ComponentStatus {
	for _, c := range componentsOf(status) {
		if c.GetName() == name {
			return c
		}
	}
	return nil
}

// wantDegraded checks what every call answers while storage is down.
func wantDegraded(t *testing.T, r *running, reason string) {
	t.Helper()
	resp := must(r.Retrieve(t.Context(), &memsidecarv1.RetrieveRequest{Scope: direct("u"), Query: "peanuts"}))(t)
	if len(resp.GetMemories()) != 0 || len(resp.GetDegraded()) == 0 ||
		resp.GetDegraded()[0].GetComponent() != memsidecarv1.DegradedComponent_DEGRADED_COMPONENT_STORAGE ||
		!strings.Contains(resp.GetDegraded()[0].GetReason(), reason) {
		t.Errorf("Retrieve answers %s, want it to be degraded by storage: %q", resp, reason)
	}
	status := must(r.GetStatus(t.Context(), &memsidecarv1.GetStatusRequest{}))(t)
	c := component(status, "storage")
	if c.GetBreaker() == memsidecarv1.BreakerState_BREAKER_STATE_CLOSED || !strings.Contains(c.GetReason(), reason) || c.GetSinceTime() == nil || status.GetQueue() != nil {
		t.Errorf("the status is %s", status)
	}
	for _, method := range append(methods(), listMethods()...) {
		if method.Name() == "Retrieve" || method.Name() == "GetStatus" {
			continue
		}
		err := r.send(t, method, newMessage(t, method.Input()))
		wantCode(t, err, codes.Unavailable)
		if !strings.Contains(err.Error(), reason) {
			t.Errorf("%s does not say why: %v", method.Name(), err)
		}
	}
}

// TestSecondSidecar: on the same folder or port it is a mistake, and says which.
func TestSecondSidecar(t *testing.T) {
	r := serve(t)
	for name, test := range map[string]struct {
		listen, dir, says string
	}{
		"folder": {"127.0.0.1:0", r.dir, "another memsidecar uses this data folder"},
		"port":   {r.addr, t.TempDir(), "cannot listen on " + r.addr},
		"both":   {r.addr, r.dir, "cannot listen on " + r.addr},
	} {
		code, out, errs := runMain(t, "serve", "--listen", test.listen, "--data-dir", test.dir)
		if code != cli.ExitFailure || !strings.Contains(errs, test.says) || out != "" {
			t.Errorf("%s: exit code %d, said %q and %q", name, code, out, errs)
		}
	}
	if c := r.consider(t, direct("u"), said("I am allergic to peanuts.")); c.GetState() != remembered {
		t.Errorf("the first one is disturbed: %s", c)
	}
}
