package sidecar_test

import (
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"

	"github.com/memsidecar/memsidecar/internal/testkit/sidecartest"
)

// TestStorageOutageDegradesAnswers: Without a usable database the bot still gets answers, and no restart is needed.
func TestStorageOutageDegradesAnswers(t *testing.T) {
	t.Parallel()
	for name, outage := range sidecartest.Outages {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // waits for the next attempt to open the database
			dir := filepath.Join(t.TempDir(), "data")
			outage.Cause(t, dir)
			r := sidecartest.ServeIn(t, dir)
			health := healthpb.NewHealthClient(r.Conn)
			if got := sidecartest.Must(health.Check(t.Context(), &healthpb.HealthCheckRequest{}))(t).GetStatus(); got != healthpb.HealthCheckResponse_SERVING {
				t.Errorf("overall health is %s", got)
			}
			storage := sidecartest.Must(health.Watch(t.Context(), &healthpb.HealthCheckRequest{Service: "storage"}))(t)
			if got := sidecartest.Must(storage.Recv())(t).GetStatus(); got != healthpb.HealthCheckResponse_NOT_SERVING {
				t.Errorf("storage's health is %s", got)
			}
			wantDegraded(t, r, outage.Reason)

			outage.Cure(t, dir)
			if got := sidecartest.Must(storage.Recv())(t).GetStatus(); got != healthpb.HealthCheckResponse_SERVING {
				t.Fatalf("then storage's health is %s", got)
			}
			if c := r.Consider(t, sidecartest.Direct("u"), sidecartest.Said("I live in Lisbon.")); c.GetState() != sidecartest.Remembered {
				t.Errorf("after the outage: %s", c)
			}
			resp := r.Recalled(t, &memsidecarv1.RetrieveRequest{Scope: sidecartest.Direct("u"), Query: "Lisbon"})
			if len(resp.GetMemories()) != 1 {
				t.Errorf("after the outage: %s", resp)
			}
			status := sidecartest.Must(r.GetStatus(t.Context(), &memsidecarv1.GetStatusRequest{}))(t)
			if c := sidecartest.Component(status, "storage"); c.GetBreaker() != memsidecarv1.BreakerState_BREAKER_STATE_CLOSED || c.GetReason() != "" ||
				status.GetQueue() == nil {
				t.Errorf("after the outage: %s", status)
			}
			r.Stop()
			for text, want := range map[string]int{"circuit breaker opened": 1, "circuit breaker closed": 1, "level=WARN": 1, "level=ERROR": 0} {
				if got := strings.Count(r.Log.String(), text); got != want {
					t.Errorf("%q is logged %d times, want %d:\n%s", text, got, want, r.Log)
				}
			}
		})
	}
}

// wantDegraded checks every call's answer while storage is down.
func wantDegraded(t *testing.T, r *sidecartest.Sidecar, reason string) {
	t.Helper()
	resp := sidecartest.Must(r.Retrieve(t.Context(), &memsidecarv1.RetrieveRequest{Scope: sidecartest.Direct("u"), Query: "peanuts"}))(t)
	if len(resp.GetMemories()) != 0 || len(resp.GetDegraded()) == 0 ||
		resp.GetDegraded()[0].GetComponent() != memsidecarv1.DegradedComponent_DEGRADED_COMPONENT_STORAGE ||
		!strings.Contains(resp.GetDegraded()[0].GetReason(), reason) {
		t.Errorf("Retrieve answers %s, want it to be degraded by storage: %q", resp, reason)
	}
	status := sidecartest.Must(r.GetStatus(t.Context(), &memsidecarv1.GetStatusRequest{}))(t)
	c := sidecartest.Component(status, "storage")
	if c.GetBreaker() == memsidecarv1.BreakerState_BREAKER_STATE_CLOSED || !strings.Contains(c.GetReason(), reason) || c.GetSinceTime() == nil ||
		status.GetQueue() != nil {
		t.Errorf("the status is %s", status)
	}
	for _, method := range append(sidecartest.Methods(), sidecartest.ListMethods()...) {
		if method.Name() == "Retrieve" || method.Name() == "GetStatus" {
			continue
		}
		err := r.Send(t, method, sidecartest.NewMessage(t, method.Input()))
		sidecartest.WantCode(t, err, codes.Unavailable)
		if !strings.Contains(err.Error(), reason) {
			t.Errorf("%s does not say why: %v", method.Name(), err)
		}
	}
}
