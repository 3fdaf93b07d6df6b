package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"
)

var (
	noTime  = &timestamppb.Timestamp{Seconds: 1 << 60}
	oldTime = timestamppb.New(time.Date(1066, 10, 14, 0, 0, 0, 0, time.UTC))
)

// wrongScope has every field wrong, and wrongInScope says so.
func wrongScope() *memsidecarv1.Scope {
	return &memsidecarv1.Scope{
		Namespace: "a//b", AgentId: strings.Repeat("x", 257), ChannelKind: memsidecarv1.ChannelKind_CHANNEL_KIND_GROUP,
		SessionId: "line\nbreak",
	}
}

func wrongInScope(also ...string) []string {
	return append(also, "scope.namespace", "scope.user_id", "scope.agent_id", "scope.channel_id", "scope.session_id")
}

// invalidCase is a call that is refused, with the fields that must be named.
type invalidCase struct {
	name  string
	call  func(t *testing.T, r *running) error
	wrong []string
}

// refused makes a case of a unary call.
func refused[Q, A any](method func(*running) func(Q) (A, error), request Q, wrong ...string) invalidCase {
	return invalidCase{wrong: wrong, call: func(_ *testing.T, r *running) error {
		_, err := method(r)(request)
		return err
	}}
}

func unary[Q, A any](t *testing.T, call func(memsidecarv1.MemoryServiceClient, Q) (A, error)) func(*running) func(Q) (A, error) {
	t.Helper()
	return func(r *running) func(Q) (A, error) {
		return func(request Q) (A, error) { return call(r.MemoryServiceClient, request) }
	}
}
