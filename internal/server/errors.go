package server

import (
	"context"
	"errors"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/memsidecar/memsidecar/internal/memory"
)

// toStatus is the one place that turns errors into status codes. What nobody foresaw is answered as a constant, because
// its text may hold what is none of the caller's business.
func toStatus(err error) *status.Status {
	var invalid *memory.InvalidError
	var overload *memory.OverloadError
	var transient *memory.TransientError
	switch {
	case errors.As(err, &invalid):
		details := &errdetails.BadRequest{}
		for _, v := range invalid.Violations {
			details.FieldViolations = append(details.FieldViolations,
				&errdetails.BadRequest_FieldViolation{Field: v.Field, Description: v.Field + " " + v.Problem})
		}
		return withDetails(codes.InvalidArgument, invalid.Error(), details)
	case errors.As(err, &overload):
		return withDetails(codes.ResourceExhausted, overload.Error(),
			&errdetails.RetryInfo{RetryDelay: durationpb.New(overload.RetryAfter)})
	case errors.Is(err, memory.ErrNotFound):
		return status.New(codes.NotFound, err.Error())
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

func withDetails(code codes.Code, message string, details protoadapt.MessageV1) *status.Status {
	s := status.New(code, message)
	if detailed, err := s.WithDetails(details); err == nil {
		return detailed
	}
	return s
}
