package server

import (
	"context"
	"errors"
	"strings"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/memsidecar/memsidecar/internal/access"
	"github.com/memsidecar/memsidecar/internal/memory"
)

// toStatus is the only function that maps errors to status codes. Unexpected errors get a constant text, because their own may contain
// internals.
func toStatus(err error) *status.Status {
	var invalid *memory.InvalidError
	var overload *memory.OverloadError
	var transient *memory.TransientError
	var outside *memory.RangeError
	var over *memory.QuotaError
	switch {
	case errors.As(err, &invalid):
		bounded := bound(invalid.Violations)
		details := &errdetails.BadRequest{}
		for _, v := range bounded {
			details.FieldViolations = append(details.FieldViolations,
				&errdetails.BadRequest_FieldViolation{Field: v.Field, Description: v.Field + " " + v.Problem})
		}
		return withDetails(codes.InvalidArgument, bounded.Err().Error(), details)
	case errors.As(err, &overload):
		return withDetails(codes.ResourceExhausted, overload.Error(),
			&errdetails.RetryInfo{RetryDelay: durationpb.New(overload.RetryAfter)})
	case errors.As(err, &over): // no RetryInfo: waiting does not help
		return withDetails(codes.ResourceExhausted, over.Error(), &errdetails.QuotaFailure{
			Violations: []*errdetails.QuotaFailure_Violation{{
				Subject: quotaSubject(over.UserID), Description: over.Error(), QuotaMetric: "limits." + string(over.Quota), QuotaValue: over.Limit,
			}},
		})
	case errors.As(err, &outside):
		return status.New(codes.OutOfRange, outside.Error())
	case errors.Is(err, access.ErrUnauthenticated):
		return status.New(codes.Unauthenticated, err.Error())
	case errors.Is(err, access.ErrDenied):
		return status.New(codes.PermissionDenied, err.Error())
	case errors.Is(err, memory.ErrNotFound):
		return status.New(codes.NotFound, err.Error())
	case errors.Is(err, memory.ErrDamaged):
		return status.New(codes.DataLoss, err.Error())
	case errors.Is(err, memory.ErrPrecondition):
		return status.New(codes.FailedPrecondition, err.Error())
	case errors.Is(err, memory.ErrUnavailable), errors.As(err, &transient):
		return status.New(codes.Unavailable, err.Error())
	case errors.Is(err, context.Canceled):
		return status.New(codes.Canceled, "the call was cancelled")
	case errors.Is(err, context.DeadlineExceeded):
		return status.New(codes.DeadlineExceeded, "the deadline was exceeded")
	}
	if s, ok := status.FromError(err); ok { // from grpc itself, for example a broken stream
		return s
	}
	return status.New(codes.Internal, "internal error; the server's log has the details")
}

// quotaSubject names the owner of a quota in error details.
func quotaSubject(userID string) string {
	if userID == "" {
		return "namespace"
	}
	return "user:" + shortened(userID)
}

// An error is sent twice in HTTP/2 headers: as text and as details. Clients in languages other than Go reject headers larger than 8 KiB,
// and then their callers see no error text.
const (
	maxViolationBytes  = 300  // for a field's name or problem, which may quote the request
	maxViolationsBytes = 1200 // of all together
)

// bound returns as many violations as fit, and a last one that counts the others.
func bound(all memory.Violations) (kept memory.Violations) {
	left := maxViolationsBytes
	for i, v := range all {
		v.Field, v.Problem = shortened(v.Field), shortened(v.Problem)
		if left -= len(v.Field) + len(v.Problem); left < 0 {
			kept.Add("request", "has %d more wrong fields than fit into this answer", len(all)-i)
			break
		}
		kept = append(kept, v)
	}
	return kept
}

func shortened(text string) string {
	if len(text) <= maxViolationBytes {
		return text
	}
	return strings.ToValidUTF8(text[:maxViolationBytes], "") + "…"
}

func withDetails(code codes.Code, message string, details protoadapt.MessageV1) *status.Status {
	s := status.New(code, message)
	if detailed, err := s.WithDetails(details); err == nil {
		return detailed
	}
	return s
}
