package server

import (
	"cmp"
	"context"

	"google.golang.org/grpc"

	"github.com/memsidecar/memsidecar/internal/digest"
	"github.com/memsidecar/memsidecar/internal/lists"
	"github.com/memsidecar/memsidecar/internal/manage"
	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/queue"
	"github.com/memsidecar/memsidecar/internal/session"
	"github.com/memsidecar/memsidecar/internal/trace"
	"github.com/memsidecar/memsidecar/internal/usage/budget"
	"github.com/memsidecar/memsidecar/internal/vectorstore"
	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"
)

// UserDeps are the dependencies of the user service.
type UserDeps struct {
	Eraser   *manage.Eraser
	Exporter *manage.Exporter
	Settings *manage.Settings
	List     func(ctx context.Context, query memory.UserQuery) (memory.UserPage, error) // a page of the users of a namespace
	// Conversations and Lists return when exported data expires.
	Conversations *session.Service
	Lists         *lists.Service
}

// userService implements memsidecarv1.UserServiceServer.
type userService struct {
	memsidecarv1.UnimplementedUserServiceServer
	UserDeps
	options Options
}

// wholeUser reads the scope of a call that affects all data of a user. It rejects a channel, because that suggests that only a part is
// affected.
func wholeUser(p *memsidecarv1.Scope) (memory.User, error) {
	var v memory.Violations
	scope := wholeScope(p, true, &v)
	return scope.User(), v.Err()
}

// wholeScope reads a scope that has only a namespace and, unless needsUser is false, a user.
func wholeScope(p *memsidecarv1.Scope, needsUser bool, v *memory.Violations) memory.Scope {
	scope := scopeOf(p, needsUser, v)
	for _, field := range []struct {
		name string
		set  bool
	}{
		{"agent_id", scope.AgentID != ""},
		{"channel_id", scope.Channel.ID != ""},
		{"channel_kind", scope.Channel.Kind != memory.ChannelUnspecified},
		{"session_id", scope.SessionID != ""},
	} {
		if field.set {
			v.Add("scope."+field.name, "must be unset: this call covers all data of the user, in all channels")
		}
	}
	return scope
}

var userOrders = map[memsidecarv1.UserOrder]memory.UserOrder{
	memsidecarv1.UserOrder_USER_ORDER_UNSPECIFIED: memory.UsersByID,
	memsidecarv1.UserOrder_USER_ORDER_USER_ID:     memory.UsersByID,
	memsidecarv1.UserOrder_USER_ORDER_LAST_ACTIVE: memory.UsersByActivity,
}

// ListUsers implements memsidecarv1.UserServiceServer.
func (s *userService) ListUsers(ctx context.Context, r *memsidecarv1.ListUsersRequest) (*memsidecarv1.ListUsersResponse, error) {
	var v memory.Violations
	scope := wholeScope(r.GetScope(), false, &v)
	if scope.UserID != "" {
		v.Add("scope.user_id", "must be unset: this call lists users; to search for one set user_id_prefix")
	}
	order, known := userOrders[r.GetOrder()]
	if !known {
		v.Add("order", "is not a known order")
	}
	v.Check("user_id_prefix", memory.IDProblem(r.GetUserIdPrefix()))
	if order == memory.UsersByActivity && r.GetUserIdPrefix() != "" {
		v.Add("user_id_prefix", "cannot be combined with the order of activity: leave order unset")
	}
	query := memory.UserQuery{Namespace: scope.Namespace, Prefix: r.GetUserIdPrefix(), Order: order}
	query.Limit, query.After = page(r, defaultPageSize, &v)
	if err := v.Err(); err != nil {
		return nil, err
	}
	found, err := s.List(ctx, query)
	if err != nil {
		return nil, err
	}
	resp := &memsidecarv1.ListUsersResponse{NextPageToken: found.Next}
	for _, u := range found.Users {
		resp.Users = append(resp.Users, &memsidecarv1.User{
			UserId: u.ID, MemoryCount: u.Memories, SessionCount: u.Sessions, MessageCount: u.Messages,
			PendingConsiderationCount: u.Pending, LastActiveTime: fromTime(u.LastActive),
		})
	}
	return resp, nil
}

// ForgetUser implements memsidecarv1.UserServiceServer.
func (s *userService) ForgetUser(ctx context.Context, r *memsidecarv1.ForgetUserRequest) (*memsidecarv1.ForgetUserResponse, error) {
	user, err := wholeUser(r.GetScope())
	if err != nil {
		return nil, err
	}
	receipt, err := s.Eraser.Forget(ctx, user)
	if err != nil {
		return nil, err
	}
	return &memsidecarv1.ForgetUserResponse{
		MemoryCount: receipt.Memories, ConsiderationCount: receipt.Considerations, MessageCount: receipt.Messages,
		SessionMessageCount: receipt.SessionMessages, SessionCount: receipt.Sessions,
		RegistryItemCount: receipt.Lists.Items, NumberedListCount: receipt.Lists.Lists,
		TraceCount: receipt.Traces, SettingsDeleted: receipt.Settings, PurgedFromDisk: receipt.Purged,
		TokenCountDeleted:  receipt.Tokens,
		DigestFindingCount: receipt.Digests, FileCount: clamped(receipt.Files),
	}, nil
}

// ExportUser implements memsidecarv1.UserServiceServer.
func (s *userService) ExportUser(r *memsidecarv1.ExportUserRequest, stream grpc.ServerStreamingServer[memsidecarv1.ExportUserResponse]) error {
	user, err := wholeUser(r.GetScope())
	if err != nil {
		return err
	}
	return s.Exporter.Export(stream.Context(), user, manage.Visitor{
		Settings: func(settings memory.Settings) error {
			return stream.Send(&memsidecarv1.ExportUserResponse{
				Record: &memsidecarv1.ExportUserResponse_Settings{Settings: fromSettings(settings)},
			})
		},
		Memory: func(m memory.Memory) error {
			return stream.Send(&memsidecarv1.ExportUserResponse{
				Record: &memsidecarv1.ExportUserResponse_Memory{Memory: fromMemory(&m, s.options.Now())},
			})
		},
		Revision: func(r vectorstore.Revision) error {
			return stream.Send(&memsidecarv1.ExportUserResponse{
				Record: &memsidecarv1.ExportUserResponse_MemoryRevision{MemoryRevision: fromRevision(&r, s.options.Now())},
			})
		},
		Consideration: func(job queue.Job) error {
			return stream.Send(&memsidecarv1.ExportUserResponse{
				Record: &memsidecarv1.ExportUserResponse_Consideration{Consideration: &memsidecarv1.ExportedConsideration{
					Consideration: fromConsideration(job.Consideration), Messages: fromMessages(job.Dialogue.Messages),
				}},
			})
		},
		Session: func(said session.Session, summary *session.Summary) error {
			return stream.Send(&memsidecarv1.ExportUserResponse{
				Record: &memsidecarv1.ExportUserResponse_Session{Session: &memsidecarv1.ExportedSession{
					Session: fromSession(&said, s.Conversations.WindowExpiry(&said, s.options.Now())), Summary: fromSummary(summary),
				}},
			})
		},
		Message: func(m session.Message) error {
			return stream.Send(&memsidecarv1.ExportUserResponse{
				Record: &memsidecarv1.ExportUserResponse_Message{Message: fromSessionMessage(&m)},
			})
		},
		Digest: func(e digest.Entry) error {
			return stream.Send(&memsidecarv1.ExportUserResponse{Record: &memsidecarv1.ExportUserResponse_DigestFinding{
				DigestFinding: fromFinding(&e, user),
			}})
		},
		Trace: func(r trace.Record) error {
			return stream.Send(&memsidecarv1.ExportUserResponse{Record: &memsidecarv1.ExportUserResponse_Trace{Trace: fromTrace(r)}})
		},
		Tokens: func(e budget.Entry) error {
			return stream.Send(&memsidecarv1.ExportUserResponse{Record: &memsidecarv1.ExportUserResponse_TokenCount{
				TokenCount: &memsidecarv1.ExportedTokenCount{Day: e.Day, Tokens: e.Tokens, RefusedCallCount: e.Refused},
			}})
		},
		Registry: func(r lists.Exported) error {
			return stream.Send(&memsidecarv1.ExportUserResponse{
				Record: &memsidecarv1.ExportUserResponse_Registry{Registry: &memsidecarv1.ExportedRegistry{
					List: r.List, Kind: registryKinds.toProto[r.Kind], ChannelId: r.Channel.ID,
					ChannelKind: channelKinds.toProto[r.Channel.Kind], LastCheckTime: fromTime(r.LastCheck),
				}},
			})
		},
		RegistryItem: func(i lists.Item) error {
			return stream.Send(&memsidecarv1.ExportUserResponse{Record: &memsidecarv1.ExportUserResponse_RegistryItem{RegistryItem: fromItem(&i)}})
		},
		NumberedList: func(l lists.Shown) error {
			return stream.Send(&memsidecarv1.ExportUserResponse{
				Record: &memsidecarv1.ExportUserResponse_NumberedList{NumberedList: exportedList(&l, s.Lists.Expiry(&l))},
			})
		},
	})
}

// GetUserSettings implements memsidecarv1.UserServiceServer.
func (s *userService) GetUserSettings(ctx context.Context, r *memsidecarv1.GetUserSettingsRequest) (*memsidecarv1.GetUserSettingsResponse, error) {
	var v memory.Violations
	scope := scopeOf(r.GetScope(), true, &v)
	if err := v.Err(); err != nil {
		return nil, err
	}
	settings, err := s.Settings.Get(ctx, scope.User())
	if err != nil {
		return nil, err
	}
	return &memsidecarv1.GetUserSettingsResponse{Settings: fromSettings(settings)}, nil
}

// UpdateUserSettings implements memsidecarv1.UserServiceServer.
func (s *userService) UpdateUserSettings(ctx context.Context, r *memsidecarv1.UpdateUserSettingsRequest) (*memsidecarv1.UpdateUserSettingsResponse, error) {
	var v memory.Violations
	scope := scopeOf(r.GetScope(), true, &v)
	p := cmp.Or(r.GetSettings(), &memsidecarv1.UserSettings{}) // a mask without values clears fields
	var patch manage.SettingsPatch
	for _, field := range maskedFields(r.GetUpdateMask(), p, []string{"time_zone", "language", "paused", "memorize_every"}, "settings", &v) {
		switch field {
		case "time_zone":
			patch.TimeZone = &p.TimeZone
		case "language":
			patch.Language = &p.Language
		case "paused":
			patch.Paused = &p.Paused
		case "memorize_every":
			patch.MemorizeEvery = new(toEvery(p.MemorizeEvery != nil, p.GetMemorizeEvery()))
		}
	}
	settings, err := s.Settings.Update(ctx, scope.User(), patch, v)
	if err != nil {
		return nil, err
	}
	return &memsidecarv1.UpdateUserSettingsResponse{Settings: fromSettings(settings)}, nil
}
