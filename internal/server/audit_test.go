package server_test

import (
	"errors"
	"io"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"

	"github.com/memsidecar/memsidecar/internal/testkit/sidecartest"
)

// audit returns the users and the total of an audit.
func audit(
	t *testing.T,
	r *sidecartest.Sidecar,
	request *memsidecarv1.AuditMemoriesRequest,
) (users []*memsidecarv1.MemoryAudit, total *memsidecarv1.MemoryAudit, err error) {
	t.Helper()
	stream, err := memsidecarv1.NewAdminServiceClient(r.Conn).AuditMemories(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	for {
		record, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return users, total, nil
		}
		if err != nil {
			return nil, nil, err
		}
		if total != nil {
			t.Errorf("after the total comes %s", record)
		}
		if u := record.GetUser(); u != nil {
			users = append(users, u)
		}
		total = record.GetTotal()
	}
}

// TestAuditReportsOnlyWhatIsAsked: An audit reports the namespace or the user of the request and changes nothing.
func TestAuditReportsOnlyWhatIsAsked(t *testing.T) {
	t.Parallel()
	r := sidecartest.Serve(t)
	for _, as := range []*memsidecarv1.Scope{
		sidecartest.Direct("ann"), sidecartest.Direct("ben"),
		sidecartest.InNamespace("else/where", sidecartest.Direct("ann")),
	} {
		taken := sidecartest.Must(importAll(t.Context(), r, as,
			&memsidecarv1.Memory{Text: "The user said: \"Thank you, " + as.GetNamespace() + as.GetUserId() + "!\""},
			&memsidecarv1.Memory{Text: "用户说：“谢谢你的建议！”", Scope: sidecartest.Group(as.GetUserId(), "g")},
			&memsidecarv1.Memory{Text: "The user is a nurse."}))(t)
		if taken.GetAddedCount() != 3 {
			t.Fatalf("stored %s", taken)
		}
	}
	before := sidecartest.Must(exportAll(t.Context(), r, &memsidecarv1.Scope{UserId: "ann"}))(t)

	users, total, err := audit(t, r, &memsidecarv1.AuditMemoriesRequest{Scope: &memsidecarv1.Scope{}})
	if err != nil || len(users) != 2 || total.GetUserCount() != 2 || total.GetActiveCount() != 6 || total.GetJunkCount() != 4 ||
		total.GetDoubtfulShare() < 0.66 {
		t.Errorf("the namespace: %v, %s, %v", users, total, err)
	}
	users, total, err = audit(t, r, &memsidecarv1.AuditMemoriesRequest{Scope: &memsidecarv1.Scope{Namespace: "else/where", UserId: "ann"}})
	if err != nil || len(users) != 1 || total.GetActiveCount() != 3 || total.GetUserCount() != 1 {
		t.Fatalf("one user elsewhere: %v, %s, %v", users, total, err)
	}
	if text := protojson.Format(users[0]); !strings.Contains(text, "Thank you, else/whereann!") || strings.Contains(text, "you, ann!") ||
		strings.Contains(text, "ben!") {
		t.Errorf("the examples are %s", text)
	}
	if _, total, err := audit(t, r, &memsidecarv1.AuditMemoriesRequest{Scope: &memsidecarv1.Scope{Namespace: "nowhere"}}); err != nil ||
		total.GetUserCount() != 0 {
		t.Errorf("an empty namespace: %s, %v", total, err)
	}
	for name, request := range map[string]*memsidecarv1.AuditMemoriesRequest{
		"a channel":         {Scope: sidecartest.Group("ann", "g")},
		"a session":         {Scope: &memsidecarv1.Scope{SessionId: "s"}},
		"users":             {MaxUsers: proto.Int32(201)},
		"fewer than no one": {MaxUsers: proto.Int32(-1)},
		"examples":          {MaxExamples: proto.Int32(21)},
	} {
		if _, _, err := audit(t, r, request); status.Code(err) != codes.InvalidArgument {
			t.Errorf("%s: %v", name, err)
		}
	}
	if after := sidecartest.Must(exportAll(t.Context(), r, &memsidecarv1.Scope{UserId: "ann"}))(t); !proto.Equal(before, after) {
		t.Errorf("an audit changes\n%s\ninto\n%s", protojson.Format(before), protojson.Format(after))
	}
}
