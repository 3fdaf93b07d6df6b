package gateway

import (
	"errors"
	"math"
	"net/http"
	"strconv"

	"github.com/grpc-ecosystem/grpc-gateway/v2/runtime"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// fail writes an error: a google.rpc.Status as JSON, with the same details as over gRPC.
func (g *Gateway) fail(w http.ResponseWriter, err error) {
	s := g.backend.Status(err)
	code := runtime.HTTPStatusFromCode(s.Code())
	switch {
	case errors.Is(err, errTooLarge):
		code = http.StatusRequestEntityTooLarge
	case s.Code() == codes.Unauthenticated:
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	for _, detail := range s.Details() {
		if info, ok := detail.(*errdetails.RetryInfo); ok {
			seconds := math.Ceil(info.GetRetryDelay().AsDuration().Seconds())
			w.Header().Set("Retry-After", strconv.FormatFloat(max(seconds, 1), 'f', 0, 64))
		}
	}
	answer(w, code, s)
}

// WriteError writes an error for a request that is not a valid call: the same form, without details.
func WriteError(w http.ResponseWriter, code int, message string) {
	codeOf := map[int]codes.Code{
		http.StatusNotFound: codes.NotFound, http.StatusMethodNotAllowed: codes.Unimplemented,
		http.StatusUnsupportedMediaType: codes.InvalidArgument, http.StatusBadRequest: codes.InvalidArgument,
		http.StatusForbidden: codes.PermissionDenied, http.StatusRequestEntityTooLarge: codes.InvalidArgument,
		http.StatusTooManyRequests: codes.ResourceExhausted,
	}
	answer(w, code, status.New(codeOf[code], message))
}

func answer(w http.ResponseWriter, code int, s *status.Status) {
	text, err := new(lines).Marshal(s.Proto())
	if err != nil { // a detail has a type unknown to this program
		text, _ = new(lines).Marshal(status.New(s.Code(), s.Message()).Proto())
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(code)
	_, _ = w.Write(append(text, '\n')) //nolint:gosec // JSON with that content type; on an error the client is gone
}
