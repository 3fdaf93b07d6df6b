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

// fail answers an error: a google.rpc.Status as JSON, with the details that it has over gRPC.
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

// Refuse answers what is no call: the same form, without details.
func Refuse(w http.ResponseWriter, code int, message string) {
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
	if err != nil { // a detail of a type that this program does not know
		text, _ = new(lines).Marshal(status.New(s.Code(), s.Message()).Proto())
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(code)
	_, _ = w.Write(append(text, '\n')) //nolint:gosec // JSON, and said to be; an error means that whoever asked is gone
}
