package server

import (
	"context"
	"log/slog"
	"path"
	"time"

	"google.golang.org/grpc"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/tap"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/memsidecar/memsidecar/internal/access"
	"github.com/memsidecar/memsidecar/internal/memory"
	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"
)

// requiredLevels is the access level that each call requires. A call that is missing here requires admin access, and fails a test.
var requiredLevels = map[string]access.Level{
	memsidecarv1.MemoryService_Retrieve_FullMethodName:            access.Read,
	memsidecarv1.MemoryService_ConsiderMemorizing_FullMethodName:  access.Write,
	memsidecarv1.MemoryService_GetConsideration_FullMethodName:    access.Read,
	memsidecarv1.MemoryService_ListConsiderations_FullMethodName:  access.Read,
	memsidecarv1.MemoryService_RetryConsideration_FullMethodName:  access.Write,
	memsidecarv1.MemoryService_CreateMemory_FullMethodName:        access.Write,
	memsidecarv1.MemoryService_GetMemory_FullMethodName:           access.Read,
	memsidecarv1.MemoryService_ListMemories_FullMethodName:        access.Read,
	memsidecarv1.MemoryService_UpdateMemory_FullMethodName:        access.Write,
	memsidecarv1.MemoryService_DeleteMemory_FullMethodName:        access.Write,
	memsidecarv1.MemoryService_ListMemoryRevisions_FullMethodName: access.Read,
	memsidecarv1.MemoryService_RevertMemory_FullMethodName:        access.Write,
	memsidecarv1.MemoryService_ReleaseMemory_FullMethodName:       access.Write,
	memsidecarv1.MemoryService_ImportMemories_FullMethodName:      access.Write,

	memsidecarv1.UserService_ListUsers_FullMethodName:          access.Read,
	memsidecarv1.UserService_ForgetUser_FullMethodName:         access.Write,
	memsidecarv1.UserService_ExportUser_FullMethodName:         access.Read,
	memsidecarv1.UserService_GetUserSettings_FullMethodName:    access.Read,
	memsidecarv1.UserService_UpdateUserSettings_FullMethodName: access.Write,

	memsidecarv1.SessionService_AppendMessages_FullMethodName: access.Write,
	memsidecarv1.SessionService_GetContext_FullMethodName:     access.Read,
	memsidecarv1.SessionService_ListMessages_FullMethodName:   access.Read,
	memsidecarv1.SessionService_GetTopics_FullMethodName:      access.Read,
	memsidecarv1.SessionService_GetSession_FullMethodName:     access.Read,
	memsidecarv1.SessionService_ListSessions_FullMethodName:   access.Read,
	memsidecarv1.SessionService_UpdateSession_FullMethodName:  access.Write,
	memsidecarv1.SessionService_SwitchSession_FullMethodName:  access.Write,
	memsidecarv1.SessionService_DeleteSession_FullMethodName:  access.Write,
	memsidecarv1.SessionService_ExportSession_FullMethodName:  access.Read,
	memsidecarv1.SessionService_ImportSession_FullMethodName:  access.Write,

	memsidecarv1.NumberedListService_PutItems_FullMethodName:           access.Write,
	memsidecarv1.NumberedListService_SelectItems_FullMethodName:        access.Read,
	memsidecarv1.NumberedListService_FilterUnseen_FullMethodName:       access.Read,
	memsidecarv1.NumberedListService_ListItems_FullMethodName:          access.Read,
	memsidecarv1.NumberedListService_GetNumberedList_FullMethodName:    access.Read,
	memsidecarv1.NumberedListService_DeleteNumberedList_FullMethodName: access.Write,
	memsidecarv1.NumberedListService_ImportNumberedList_FullMethodName: access.Write,

	memsidecarv1.DigestService_GetDigest_FullMethodName:    access.Read,
	memsidecarv1.DigestService_ListDigests_FullMethodName:  access.Read,
	memsidecarv1.DigestService_SummarizeDay_FullMethodName: access.Write, // asks a model
	memsidecarv1.DigestService_GetNotebook_FullMethodName:  access.Read,

	memsidecarv1.TraceService_GetTrace_FullMethodName:   access.Read,
	memsidecarv1.TraceService_ListTraces_FullMethodName: access.Read,

	memsidecarv1.AdminService_GetStatus_FullMethodName:     access.Read,
	memsidecarv1.AdminService_AuditMemories_FullMethodName: access.Admin, // shows several people's data

	// Reflection shows only the API's schema, but callers without a token get nothing.
	"/grpc.reflection.v1.ServerReflection/ServerReflectionInfo":      access.Read,
	"/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo": access.Read,
}

// publicServices are the services that need no token, because health probes have none.
var publicServices = []string{healthpb.Health_ServiceDesc.ServiceName}

// Authenticator returns what a bearer token allows; "" means no token.
type Authenticator interface {
	Authenticate(token string) (access.Grant, error)
}

// Limiter rejects calls of users who make too many.
type Limiter interface {
	Allow(user memory.User) error
}

// guard decides which calls a caller may make. It checks the token and its level before the request is read, and the namespace when the
// scope has been read.
type guard struct {
	tokens  Authenticator // nil: calls need no token
	limiter Limiter       // nil: no rate limit
	log     *slog.Logger
}

// admit checks each call before its request is read. It must not block.
func (g *guard) admit(ctx context.Context, info *tap.Info) (context.Context, error) {
	method := info.FullMethodName
	if g.tokens == nil {
		return countCall(access.WithGrant(ctx, access.Unrestricted()))
	}
	if isPublic(method) {
		return countCall(ctx)
	}
	grant, err := g.authenticate(info.Header, method)
	if err != nil {
		g.log.DebugContext(ctx, "refused", "method", path.Base(method), "token", grant.ID, "reason", err)
		return nil, toStatus(err).Err()
	}
	return countCall(access.WithGrant(ctx, grant))
}

// countCall counts a call on its connection until the call's context ends. Calls from inside the process are counted by their own edge.
func countCall(ctx context.Context) (context.Context, error) {
	conn := connOf(ctx)
	if conn == nil {
		return ctx, nil
	}
	end, err := conn.Begin()
	if err != nil {
		return nil, toStatus(err).Err()
	}
	context.AfterFunc(ctx, end)
	return ctx, nil
}

// authenticate returns the grant of a call's token, or an error when it does not allow the call.
func (g *guard) authenticate(header metadata.MD, method string) (access.Grant, error) {
	grant, err := g.tokens.Authenticate(bearer(header))
	if err != nil {
		return grant, err
	}
	level, known := requiredLevels[method]
	if !known {
		level = access.Admin
	}
	return grant, grant.CheckLevel(level)
}

// bearer returns the token of a call, or "".
func bearer(header metadata.MD) string { return access.Bearer(header.Get("authorization")) }

// confine rejects a request about a namespace that the caller's token does not reach, and fills in the namespace of a token that is bound
// to one. It returns the user whom the request names.
func (g *guard) confine(ctx context.Context, req any) (user memory.User, scoped bool, err error) {
	scope := requestScope(req)
	if scope == nil {
		return user, false, nil
	}
	grant, ok := access.GrantOf(ctx)
	if !ok { // cannot occur: calls with a scope are authenticated by admit
		return user, true, access.ErrUnauthenticated
	}
	namespace, err := grant.ResolveNamespace(scope.GetNamespace())
	if err != nil {
		return user, true, err
	}
	if _, bound := grant.OnlyNamespace(); bound {
		scope.Namespace = namespace
	}
	return memory.User{Namespace: namespace, ID: scope.GetUserId()}, true, nil
}

// requestScope returns the scope of a request, and creates it when the request has none. It is nil for messages that never have one, such
// as the second message of a stream.
func requestScope(req any) *memsidecarv1.Scope {
	switch r := req.(type) {
	case *memsidecarv1.ImportMemoriesRequest:
		return r.GetScope()
	case *memsidecarv1.ImportSessionRequest:
		if r.GetSession() == nil {
			return nil
		}
		return scopeField(r.GetSession())
	case proto.Message:
		return scopeField(r)
	}
	return nil
}

func scopeField(m proto.Message) *memsidecarv1.Scope {
	reflected := m.ProtoReflect()
	field := reflected.Descriptor().Fields().ByName("scope")
	if field == nil || field.Kind() != protoreflect.MessageKind || field.IsList() {
		return nil
	}
	scope, ok := reflected.Mutable(field).Message().Interface().(*memsidecarv1.Scope)
	if !ok {
		return nil
	}
	return scope
}

func (g *guard) allow(user memory.User) error {
	if g.limiter == nil {
		return nil
	}
	return g.limiter.Allow(user)
}

// unary admits a call when its token reaches the scope and its user is within the rate limit.
func (g *guard) unary() grpc.UnaryServerInterceptor {
	return func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		user, scoped, err := g.confine(ctx, req)
		if err == nil && scoped {
			err = g.allow(user)
		}
		if err != nil {
			return nil, err
		}
		return handler(ctx, req)
	}
}

// stream does the same for streams. A stream counts as one call, with its first scope. Its token is checked again while it runs.
func (g *guard) stream() grpc.StreamServerInterceptor {
	return func(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
		return handler(srv, &guardedStream{ServerStream: stream, guard: g, method: info.FullMethod, checked: time.Now()})
	}
}
