package server

import (
	"regexp"
	"strings"
	"testing"

	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/memsidecar/memsidecar/internal/access"
	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"
)

// readOnlyCall are the prefixes of read-only calls. The test below allows no exceptions, because a misleading name would be a mistake.
var readOnlyCall = regexp.MustCompile(`^(Get|List|Retrieve|Export|Filter|Select)`)

// TestEveryCallHasItsLevel: Every call of a service has an access level.
func TestEveryCallHasItsLevel(t *testing.T) {
	left := map[string]bool{}
	for method := range requiredLevels {
		left[method] = !strings.HasPrefix(method, "/grpc.reflection.")
	}
	protoregistry.GlobalFiles.RangeFilesByPackage("memsidecar.v1", func(file protoreflect.FileDescriptor) bool {
		for i := range file.Services().Len() {
			methods := file.Services().Get(i).Methods()
			for j := range methods.Len() {
				m := methods.Get(j)
				name := "/" + string(m.Parent().FullName()) + "/" + string(m.Name())
				level, ok := requiredLevels[name]
				if !ok {
					t.Errorf("%s: add its level to requiredLevels in guard.go", name)
				}
				if want := map[bool]access.Level{true: access.Read, false: access.Write}[readOnlyCall.MatchString(string(m.Name()))]; ok &&
					level < want {
					t.Errorf("%s needs %s, want %s at least", name, level, want)
				}
				left[name] = false
			}
		}
		return true
	})
	for name, is := range left {
		if is {
			t.Errorf("requiredLevels in guard.go has %s, which is no call", name)
		}
	}
}

func TestBearer(t *testing.T) {
	for header, want := range map[string]string{
		"Bearer abc": "abc", "bearer abc": "abc", "BEARER  abc ": "abc",
		"": "", "abc": "", "Basic abc": "", "Bearer": "", "Bearerabc": "",
	} {
		if got := bearer(metadata.Pairs("authorization", header)); got != want {
			t.Errorf("%q has the token %q, want %q", header, got, want)
		}
	}
	if got := bearer(metadata.Pairs("authorization", "Bearer a", "authorization", "Bearer b")); got != "" {
		t.Errorf("of two tokens %q counts", got)
	}
}

// TestRequestScope: Authorization checks the same scope that the call uses.
func TestRequestScope(t *testing.T) {
	inner := &memsidecarv1.Scope{Namespace: "inner"}
	for _, request := range []any{
		&memsidecarv1.CreateMemoryRequest{Memory: &memsidecarv1.Memory{Scope: inner}},
		&memsidecarv1.GetStatusRequest{},
		&memsidecarv1.ImportSessionRequest{
			Item: &memsidecarv1.ImportSessionRequest_Session{Session: &memsidecarv1.ImportedSession{Session: &memsidecarv1.Session{}}},
		},
	} {
		scope := requestScope(request)
		if scope == nil || scope == inner {
			t.Fatalf("%T has the scope %v", request, scope)
		}
		scope.Namespace = "set"
		if again := requestScope(request); again.GetNamespace() != "set" {
			t.Errorf("%T has the scope %v afterwards", request, again)
		}
	}
	for _, later := range []any{
		&memsidecarv1.ImportMemoriesRequest{Item: &memsidecarv1.ImportMemoriesRequest_Memory{Memory: &memsidecarv1.Memory{Scope: inner}}},
		&memsidecarv1.ImportSessionRequest{Item: &memsidecarv1.ImportSessionRequest_Message{}},
	} {
		if scope := requestScope(later); scope != nil {
			t.Errorf("%T has the scope %v", later, scope)
		}
	}
}
