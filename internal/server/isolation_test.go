package server_test

import (
	"context"
	"errors"
	"fmt"
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

// victim is the user whose data others try to reach.
type victim struct {
	scope           *memsidecarv1.Scope
	memoryID        string
	considerationID string
	pageToken       string // of the victim's list
}

// attempts has, for every call of the service, an attempt with the victim's identifiers. A call without an attempt fails the test.
func attempts(r *sidecartest.Sidecar, v victim) map[string]func(ctx context.Context, as *memsidecarv1.Scope) (proto.Message, error) {
	return map[string]func(context.Context, *memsidecarv1.Scope) (proto.Message, error){
		"Retrieve": func(ctx context.Context, as *memsidecarv1.Scope) (proto.Message, error) {
			zero, all := 0.0, int32(100)
			return r.Retrieve(ctx, &memsidecarv1.RetrieveRequest{Scope: as, Query: secretText, MinRelevance: &zero, TopK: &all})
		},
		"ConsiderMemorizing": func(ctx context.Context, as *memsidecarv1.Scope) (proto.Message, error) {
			return r.ConsiderMemorizing(ctx, &memsidecarv1.ConsiderMemorizingRequest{
				Scope: as, RequestId: "the-victims-request", Messages: []*memsidecarv1.Message{sidecartest.Said("hello")},
			})
		},
		"GetConsideration": func(ctx context.Context, as *memsidecarv1.Scope) (proto.Message, error) {
			return r.GetConsideration(ctx, &memsidecarv1.GetConsiderationRequest{Scope: as, ConsiderationId: v.considerationID})
		},
		"ListConsiderations": func(ctx context.Context, as *memsidecarv1.Scope) (proto.Message, error) {
			return r.ListConsiderations(ctx, &memsidecarv1.ListConsiderationsRequest{Scope: as})
		},
		"RetryConsideration": func(ctx context.Context, as *memsidecarv1.Scope) (proto.Message, error) {
			return r.RetryConsideration(ctx, &memsidecarv1.RetryConsiderationRequest{Scope: as, ConsiderationId: v.considerationID})
		},
		"CreateMemory": func(ctx context.Context, as *memsidecarv1.Scope) (proto.Message, error) {
			return r.CreateMemory(ctx, &memsidecarv1.CreateMemoryRequest{
				Scope: as, RequestId: "the-victims-request", Memory: &memsidecarv1.Memory{Id: v.memoryID, Text: "harmless"},
			})
		},
		"GetMemory": func(ctx context.Context, as *memsidecarv1.Scope) (proto.Message, error) {
			return r.GetMemory(ctx, &memsidecarv1.GetMemoryRequest{Scope: as, MemoryId: v.memoryID})
		},
		"ListMemories": func(ctx context.Context, as *memsidecarv1.Scope) (proto.Message, error) {
			if _, err := r.ListMemories(ctx, &memsidecarv1.ListMemoriesRequest{Scope: as, PageSize: 1, PageToken: v.pageToken}); status.Code(
				err,
			) != codes.InvalidArgument {
				return nil, fmt.Errorf("the page token of another user's list: %w", err)
			}
			return r.ListMemories(ctx, &memsidecarv1.ListMemoriesRequest{Scope: as})
		},
		"UpdateMemory": func(ctx context.Context, as *memsidecarv1.Scope) (proto.Message, error) {
			return r.UpdateMemory(ctx, &memsidecarv1.UpdateMemoryRequest{
				Scope: as, Memory: &memsidecarv1.Memory{Id: v.memoryID, Text: "overwritten"},
			})
		},
		"DeleteMemory": func(ctx context.Context, as *memsidecarv1.Scope) (proto.Message, error) {
			return r.DeleteMemory(ctx, &memsidecarv1.DeleteMemoryRequest{Scope: as, MemoryId: v.memoryID})
		},
		"ListMemoryRevisions": func(ctx context.Context, as *memsidecarv1.Scope) (proto.Message, error) {
			return r.ListMemoryRevisions(ctx, &memsidecarv1.ListMemoryRevisionsRequest{Scope: as, MemoryId: v.memoryID})
		},
		"RevertMemory": func(ctx context.Context, as *memsidecarv1.Scope) (proto.Message, error) {
			return r.RevertMemory(ctx, &memsidecarv1.RevertMemoryRequest{Scope: as, MemoryId: v.memoryID})
		},
		"ReleaseMemory": func(ctx context.Context, as *memsidecarv1.Scope) (proto.Message, error) {
			return r.ReleaseMemory(ctx, &memsidecarv1.ReleaseMemoryRequest{Scope: as, MemoryId: v.memoryID})
		},
		"ListUsers": func(ctx context.Context, as *memsidecarv1.Scope) (proto.Message, error) {
			return r.ListUsers(ctx, &memsidecarv1.ListUsersRequest{Scope: &memsidecarv1.Scope{Namespace: as.GetNamespace()}})
		},
		"ForgetUser": func(ctx context.Context, as *memsidecarv1.Scope) (proto.Message, error) {
			return r.ForgetUser(ctx, &memsidecarv1.ForgetUserRequest{
				Scope: &memsidecarv1.Scope{Namespace: as.GetNamespace(), UserId: as.GetUserId()},
			})
		},
		"ExportUser": func(ctx context.Context, as *memsidecarv1.Scope) (proto.Message, error) {
			return exportAll(ctx, r, &memsidecarv1.Scope{Namespace: as.GetNamespace(), UserId: as.GetUserId()})
		},
		"ImportMemories": func(ctx context.Context, as *memsidecarv1.Scope) (proto.Message, error) {
			return importAll(ctx, r, as, &memsidecarv1.Memory{Id: v.memoryID, Text: "overwritten", Scope: v.scope})
		},
		"GetUserSettings": func(ctx context.Context, as *memsidecarv1.Scope) (proto.Message, error) {
			return r.GetUserSettings(ctx, &memsidecarv1.GetUserSettingsRequest{Scope: as})
		},
		"UpdateUserSettings": func(ctx context.Context, as *memsidecarv1.Scope) (proto.Message, error) {
			return r.UpdateUserSettings(ctx, &memsidecarv1.UpdateUserSettingsRequest{
				Scope: as, Settings: &memsidecarv1.UserSettings{Paused: true},
			})
		},
		"GetStatus": func(ctx context.Context, as *memsidecarv1.Scope) (proto.Message, error) {
			return r.GetStatus(ctx, &memsidecarv1.GetStatusRequest{Scope: as})
		},
	}
}

// exportAll returns an export as one searchable message.
func exportAll(ctx context.Context, r *sidecartest.Sidecar, scope *memsidecarv1.Scope) (proto.Message, error) {
	stream, err := r.ExportUser(ctx, &memsidecarv1.ExportUserRequest{Scope: scope})
	if err != nil {
		return nil, err
	}
	all := &memsidecarv1.ListMemoriesResponse{}
	for {
		record, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		all.Memories = append(all.Memories, &memsidecarv1.Memory{Text: protojson.Format(record)})
	}
}

func importAll(
	ctx context.Context,
	r *sidecartest.Sidecar,
	scope *memsidecarv1.Scope,
	memories ...*memsidecarv1.Memory,
) (*memsidecarv1.ImportMemoriesResponse, error) {
	stream, err := r.ImportMemories(ctx)
	if err != nil {
		return nil, err
	}
	err = stream.Send(&memsidecarv1.ImportMemoriesRequest{Item: &memsidecarv1.ImportMemoriesRequest_Scope{Scope: scope}})
	for _, m := range memories {
		if err == nil {
			err = stream.Send(&memsidecarv1.ImportMemoriesRequest{Item: &memsidecarv1.ImportMemoriesRequest_Memory{Memory: m}})
		}
	}
	if err != nil && !errors.Is(err, io.EOF) { // EOF: the answer has the error
		return nil, err
	}
	return stream.CloseAndRecv()
}

// secretText is shown only to the victim.
const secretText = "暗号是紫色河马"

// TestUsersCannotReachEachOthersMemories lets another user of the namespace, and the same user id in another namespace, try every call
// with the victim's identifiers. Both have stored similar texts with another secret.
func TestUsersCannotReachEachOthersMemories(t *testing.T) {
	t.Parallel()
	for name, attacker := range map[string]*memsidecarv1.Scope{
		"another user":      sidecartest.Direct("mallory"),
		"another namespace": {Namespace: "other", UserId: "alice", ChannelKind: memsidecarv1.ChannelKind_CHANNEL_KIND_DIRECT},
	} {
		t.Run(name, func(t *testing.T) {
			r := sidecartest.Serve(t)
			v := victim{scope: sidecartest.Direct("alice")}
			c, err := r.ConsiderMemorizing(t.Context(), &memsidecarv1.ConsiderMemorizingRequest{
				Scope: v.scope, RequestId: "the-victims-request", Messages: []*memsidecarv1.Message{sidecartest.Said("请记住：我的" + secretText)},
			})
			if err != nil {
				t.Fatal(err)
			}
			v.considerationID = c.GetConsideration().GetId()
			v.memoryID = r.Consider(t, v.scope, sidecartest.Said("请记住：我的另一个"+secretText)).GetChanges()[0].GetMemoryId()
			list, err := r.ListMemories(t.Context(), &memsidecarv1.ListMemoriesRequest{Scope: v.scope, PageSize: 1})
			if err != nil {
				t.Fatal(err)
			}
			v.pageToken = list.GetNextPageToken()
			before, err := exportAll(t.Context(), r, &memsidecarv1.Scope{UserId: "alice"})
			if err != nil {
				t.Fatal(err)
			}
			r.Consider(t, attacker, sidecartest.Said("请记住：我的暗号是绿色刺猬"))

			tried := attempts(r, v)
			for _, method := range append(sidecartest.MethodNames(&memsidecarv1.MemoryService_ServiceDesc), "GetMemory") {
				try := tried[method]
				if try == nil {
					t.Errorf("%s is not tried: add an attempt by another user", method)
					continue
				}
				resp, err := try(t.Context(), attacker)
				if err != nil && status.Code(err) != codes.NotFound {
					t.Errorf("%s: %v, want NOT_FOUND or an answer without the victim's data", method, err)
				}
				if err == nil && strings.Contains(protojson.Format(resp), "紫色河马") {
					t.Errorf("%s shows the victim's data: %s", method, protojson.Format(resp))
				}
			}
			after, err := exportAll(t.Context(), r, &memsidecarv1.Scope{UserId: "alice"})
			if err != nil || !proto.Equal(before, after) {
				t.Errorf("the victim's data was changed (%v):\n%s\nbefore:\n%s", err, protojson.Format(after), protojson.Format(before))
			}
		})
	}
}
