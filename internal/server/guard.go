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

// needed is what each call needs. A call that is missing here needs admin access, and fails a test.
var needed = map[string]access.Level{
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

	// What services there are is no secret, and yet nothing for strangers.
	"/grpc.reflection.v1.ServerReflection/ServerReflectionInfo":      access.Read,
	"/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo": access.Read,
}

// everybodys are the services that need no token: probes have none.
var everybodys = []string{healthpb.Health_ServiceDesc.ServiceName}

// Authenticator says what a bearer token allows; "" is no token.
type Authenticator interface {
	Authenticate(token string) (access.Grant, error)
}

// Limiter refuses calls of those who make too many.
type Limiter interface {
	Allow(user memory.User) error
}

// guard decides who may make which call. Whether the token is known and allows the call is decided before anything of the
// request is read; that it reaches the namespace, when its scope is.
type guard struct {
	tokens  Authenticator // nil: everybody may call
	limiter Limiter       // nil: as often as they like
	log     *slog.Logger
}

// admit is called for each call, before its request is read. It must be quick.
func (g *guard) admit(ctx context.Context, info *tap.Info) (context.Context, error) {
	method := info.FullMethodName
	if g.tokens == nil {
		return admitted(access.WithGrant(ctx, access.Anybody()))
	}
	if isEverybodys(method) {
		return admitted(ctx)
	}
	grant, err := g.authenticate(info.Header, method)
	if err != nil {
		g.log.DebugContext(ctx, "refused", "method", path.Base(method), "token", grant.ID, "reason", err)
		return nil, toStatus(err).Err()
	}
	return admitted(access.WithGrant(ctx, grant))
}

// admitted counts a call until its context ends. Those from within the process are counted by who makes them.
func admitted(ctx context.Context) (context.Context, error) {
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

// authenticate returns what a call's token allows, if it allows the call.
func (g *guard) authenticate(header metadata.MD, method string) (access.Grant, error) {
	grant, err := g.tokens.Authenticate(bearer(header))
	if err != nil {
		return grant, err
	}
	level, known := needed[method]
	if !known {
		level = access.Admin
	}
	return grant, grant.Permit(level)
}

// bearer is the token that a call brings, or "".
func bearer(header metadata.MD) string { return access.Bearer(header.Get("authorization")) }

// confine refuses a request about a namespace that the caller's token does not reach, and fills in the only one it has. It
// returns whom the request is about, if it says.
func (g *guard) confine(ctx context.Context, req any) (user memory.User, scoped bool, err error) {
	scope := requestScope(req)
	if scope == nil {
		return user, false, nil
	}
	grant, ok := access.GrantOf(ctx)
	if !ok { // nothing that has a scope gets here unasked
		return user, true, access.ErrUnauthenticated
	}
	namespace, err := grant.Confine(scope.GetNamespace())
	if err != nil {
		return user, true, err
	}
	if _, bound := grant.Bound(); bound {
		scope.Namespace = namespace
	}
	return memory.User{Namespace: namespace, ID: scope.GetUserId()}, true, nil
}

// requestScope is the scope that says whose data a request is about, made if the request has none. It is nil for messages
// that have no such thing: those that follow the first of a stream.
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

// unary lets a call through whose scope its token reaches, and whose user has not called too often.
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

// stream does likewise. A stream is one call, which counts with its first scope; its token is looked at again as it goes on.
func (g *guard) stream() grpc.StreamServerInterceptor {
	return func(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
		return handler(srv, &guardedStream{ServerStream: stream, guard: g, method: info.FullMethod, checked: time.Now()})
	}
}
