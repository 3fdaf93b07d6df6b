package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"golang.org/x/text/language"
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

// wholeUser reads the scope of a call that concerns everything of a user. A channel would suggest that only a part is
// meant, so it is refused.
func wholeUser(p *memsidecarv1.Scope) (memory.User, error) {
	var v memory.Violations
	scope := wholeScope(p, true, &v)
	return scope.User(), v.Err()
}

// wholeScope reads a scope that names a user, or if need not be only the namespace, and nothing else.
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
			v.Add("scope."+field.name, "must be unset: this call concerns everything of the user, whatever the channel")
		}
	}
	return scope
}

// ForgetUser implements memsidecarv1.MemoryServiceServer.
func (s *memoryService) ForgetUser(ctx context.Context, r *memsidecarv1.ForgetUserRequest) (*memsidecarv1.ForgetUserResponse, error) {
	user, err := wholeUser(r.GetScope())
	if err != nil {
		return nil, err
	}
	receipt, err := s.Keeper.Forget(ctx, user)
	if err != nil {
		return nil, err
	}
	return &memsidecarv1.ForgetUserResponse{
		MemoryCount: receipt.Memories, ConsiderationCount: receipt.Considerations, MessageCount: receipt.Messages,
		SessionMessageCount: receipt.SessionMessages, SessionCount: receipt.Sessions,
		ResultItemCount: receipt.Results.Items, ResultListCount: receipt.Results.Lists,
		TraceCount: receipt.Traces, SettingsDeleted: receipt.Settings, PurgedFromDisk: receipt.Purged,
		TokenCountDeleted:  receipt.Tokens,
		DigestFindingCount: receipt.Digests, FileCount: clamped(receipt.Files),
	}, nil
}

// ExportUser implements memsidecarv1.MemoryServiceServer.
func (s *memoryService) ExportUser(r *memsidecarv1.ExportUserRequest, stream grpc.ServerStreamingServer[memsidecarv1.ExportUserResponse]) error {
	user, err := wholeUser(r.GetScope())
	if err != nil {
		return err
	}
	return s.Keeper.Export(stream.Context(), user, manage.Visitor{
		Settings: func(settings memory.Settings) error {
			return stream.Send(&memsidecarv1.ExportUserResponse{
				Record: &memsidecarv1.ExportUserResponse_Settings{Settings: fromSettings(settings)},
			})
		},
		Memory: func(m memory.Memory) error {
			return stream.Send(&memsidecarv1.ExportUserResponse{
				Record: &memsidecarv1.ExportUserResponse_Memory{Memory: fromMemory(&m)},
			})
		},
		Revision: func(r vectorstore.Revision) error {
			return stream.Send(&memsidecarv1.ExportUserResponse{
				Record: &memsidecarv1.ExportUserResponse_MemoryRevision{MemoryRevision: fromRevision(&r)},
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
					Session: s.session(&said), Summary: fromSummary(summary),
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
				Record: &memsidecarv1.ExportUserResponse_ResultRegistry{ResultRegistry: &memsidecarv1.ExportedResultRegistry{
					List: r.List, Kind: registryKinds.toProto[r.Kind], ChannelId: r.Channel.ID,
					ChannelKind: channelKinds.toProto[r.Channel.Kind], LastCheckTime: fromTime(r.LastCheck),
				}},
			})
		},
		ResultItem: func(i lists.Item) error {
			return stream.Send(&memsidecarv1.ExportUserResponse{Record: &memsidecarv1.ExportUserResponse_ResultItem{ResultItem: fromItem(&i)}})
		},
		ResultList: func(l lists.Shown) error {
			return stream.Send(&memsidecarv1.ExportUserResponse{
				Record: &memsidecarv1.ExportUserResponse_ResultList{ResultList: s.exportedList(&l)},
			})
		},
	})
}

// ImportMemories implements memsidecarv1.MemoryServiceServer.
func (s *memoryService) ImportMemories(stream grpc.ClientStreamingServer[memsidecarv1.ImportMemoriesRequest, memsidecarv1.ImportMemoriesResponse]) error {
	ctx := stream.Context()
	first, err := stream.Recv()
	if errors.Is(err, io.EOF) || err == nil && first.GetScope() == nil {
		return memory.Invalid("scope", "is required in the first message of the stream")
	}
	if err != nil {
		return err
	}
	var v memory.Violations
	scope := scopeOf(first.GetScope(), true, &v)
	if err := v.Err(); err != nil {
		return err
	}
	importer := s.Keeper.Import(scope)
	for i := 0; ; i++ {
		item, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return errors.Join(err, importer.Flush(ctx))
		}
		at := fmt.Sprintf("memory[%d]", i)
		if item.GetMemory() == nil {
			err := memory.Invalid(at, "is missing: each message after the first has a memory")
			return errors.Join(err, importer.Flush(ctx))
		}
		var v memory.Violations
		m := toMemory(item.GetMemory(), at, &v)
		if s.options.redactWritten(&m) {
			importer.Skip()
			continue
		}
		if err := importer.Add(ctx, m, v); err != nil {
			return err
		}
	}
	if err := importer.Flush(ctx); err != nil {
		return err
	}
	return stream.SendAndClose(&memsidecarv1.ImportMemoriesResponse{AddedCount: importer.Added, SkippedCount: importer.Skipped})
}

// GetUserSettings implements memsidecarv1.MemoryServiceServer.
func (s *memoryService) GetUserSettings(ctx context.Context, r *memsidecarv1.GetUserSettingsRequest) (*memsidecarv1.GetUserSettingsResponse, error) {
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

// UpdateUserSettings implements memsidecarv1.MemoryServiceServer.
func (s *memoryService) UpdateUserSettings(ctx context.Context, r *memsidecarv1.UpdateUserSettingsRequest) (*memsidecarv1.UpdateUserSettingsResponse, error) {
	var v memory.Violations
	scope := scopeOf(r.GetScope(), true, &v)
	p := cmp.Or(r.GetSettings(), &memsidecarv1.UserSettings{}) // a mask alone empties fields
	fields := maskedFields(r.GetUpdateMask(), p, []string{"time_zone", "language", "paused", "memorize_every"}, "settings", &v)
	spoken := ""
	var every *int
	for _, field := range fields { // what is not changed is not checked
		switch field {
		case "time_zone":
			// Local is Go's name for the machine's zone, which is none of a user's.
			if _, err := time.LoadLocation(p.GetTimeZone()); err != nil || p.GetTimeZone() == "Local" {
				v.Add("settings.time_zone", "is not an IANA time zone such as \"Asia/Shanghai\"")
			}
		case "language":
			if p.GetLanguage() == "" {
				continue
			}
			tag, err := language.Parse(p.GetLanguage())
			if err != nil {
				v.Add("settings.language", "is not a BCP 47 language such as \"zh\" or \"en\"")
			}
			spoken = tag.String() // zh_CN is understood and becomes zh-CN
		case "memorize_every":
			every = toEvery(p.MemorizeEvery != nil, p.GetMemorizeEvery(), "settings.memorize_every", &v)
		}
	}
	if err := v.Err(); err != nil {
		return nil, err
	}
	settings, err := s.Settings.Update(ctx, scope.User(), func(settings *memory.Settings) {
		for _, field := range fields {
			switch field {
			case "time_zone":
				settings.TimeZone = p.GetTimeZone()
			case "language":
				settings.Language = spoken
			case "paused":
				settings.Paused = p.GetPaused()
			case "memorize_every":
				settings.MemorizeEvery = every
			}
		}
		settings.UpdatedAt = time.Now().Truncate(time.Microsecond)
	})
	if err != nil {
		return nil, err
	}
	return &memsidecarv1.UpdateUserSettingsResponse{Settings: fromSettings(settings)}, nil
}
