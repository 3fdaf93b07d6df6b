package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/memsidecar/memsidecar/internal/listen"
)

// Exit codes of the program. docs/cli.md and the help explain them.
const (
	ExitFailure     = 1   // the operation failed
	ExitUsage       = 2   // invalid command line, configuration or file
	ExitUnavailable = 3   // no sidecar, it is unavailable, or a timeout; retrying may help
	ExitNotFound    = 4   // not found, or not visible from the given channel
	ExitInterrupted = 130 // by a signal
)

// Error is an error message with a remedy and an exit code.
type Error struct {
	Code    int
	Message string
	cause   error
}

// Error returns the message.
func (e *Error) Error() string { return e.Message }

// Unwrap returns the sidecar's error, if any.
func (e *Error) Unwrap() error { return e.cause }

// ExitCode returns the exit code for a command's error.
func ExitCode(err error) int {
	var e *Error
	switch {
	case err == nil:
		return 0
	case errors.As(err, &e):
		return e.Code
	case errors.Is(err, context.Canceled):
		return ExitInterrupted
	}
	return ExitFailure
}

// usage returns an error of the command line.
func usage(format string, args ...any) error {
	return &Error{Code: ExitUsage, Message: fmt.Sprintf(format, args...)}
}

func failure(format string, args ...any) error {
	return &Error{Code: ExitFailure, Message: fmt.Sprintf(format, args...)}
}

// wrapError adds a prefix to an error and keeps its exit code.
func wrapError(err error, format string, args ...any) error {
	return &Error{Code: ExitCode(err), Message: fmt.Sprintf(format, args...) + ": " + err.Error(), cause: err}
}

func interrupted(format string, args ...any) error {
	return &Error{Code: ExitInterrupted, Message: "interrupted" + fmt.Sprintf(format, args...)}
}

// isNotFound reports whether the answer was NOT_FOUND.
func isNotFound(err error) bool { return status.Code(err) == codes.NotFound }

// explain converts a grpc error into a message for users. The context is the command's, without the deadline of the call.
func (c *connection) explain(ctx context.Context, state *call, err error) error {
	if err == nil {
		return nil
	}
	s := status.Convert(err)
	code, message := ExitFailure, block(s.Message())
	switch {
	case ctx.Err() != nil:
		code, message = ExitInterrupted, "interrupted"
	case s.Code() == codes.Unavailable || s.Code() == codes.DeadlineExceeded:
		code, message = ExitUnavailable, c.unavailable(state, s)
	case s.Code() == codes.OutOfRange:
		code = ExitUsage
	case s.Code() == codes.InvalidArgument:
		code, message = ExitUsage, violations(s)
	case s.Code() == codes.NotFound:
		code = ExitNotFound
	case s.Code() == codes.FailedPrecondition:
		message = strings.TrimPrefix(message, "failed precondition: ")
	case s.Code() == codes.ResourceExhausted:
		code = ExitUnavailable
		for _, detail := range s.Details() {
			if info, ok := detail.(*errdetails.RetryInfo); ok && !strings.Contains(message, "try again") {
				message += fmt.Sprintf("; try again in %s", info.GetRetryDelay().AsDuration())
			}
		}
	case s.Code() == codes.Unauthenticated, s.Code() == codes.PermissionDenied:
		code = ExitUsage
		for _, prefix := range []string{"not authenticated: ", "permission denied: "} {
			message = strings.TrimPrefix(message, prefix)
		}
		if s.Code() == codes.Unauthenticated {
			message += "; give it with --token-file or MEMSIDECAR_TOKEN"
		}
	case s.Code() == codes.Unimplemented:
		message = fmt.Sprintf("the sidecar at %s is of another version and cannot do that: %s", c.addr, message)
	}
	return &Error{Code: code, Message: message, cause: err}
}

// unavailable distinguishes: no server, a different server, a lost connection, and a sidecar that reports itself unavailable.
func (c *connection) unavailable(state *call, s *status.Status) string {
	late := s.Code() == codes.DeadlineExceeded
	switch {
	case state.sent.Load() && late:
		return fmt.Sprintf("the sidecar at %s did not answer in time; give it more with --timeout", c.addr)
	case state.answered.Load():
		return fmt.Sprintf("the sidecar at %s cannot do that now: %s", c.addr, block(s.Message()))
	case state.sent.Load():
		return fmt.Sprintf("the connection to the sidecar at %s was lost", c.addr)
	case c.connected.Load() && late:
		return fmt.Sprintf("the server at %s did not answer in time; raise --timeout, or name another address with --addr", c.addr)
	case c.connected.Load() && c.encrypted && handshake(s) != "":
		return fmt.Sprintf("no encrypted connection to %s: %s; use --ca for the CA of its certificate, --server-name for the "+
			"name in it, --cert and --key for a client certificate", c.addr, block(handshake(s)))
	case c.connected.Load() && c.dialing.Load() == nil && c.encrypted:
		return fmt.Sprintf("the server at %s is not a sidecar, or requires a client certificate; name another address with --addr, or pass --cert and --key", c.addr)
	case c.connected.Load() && c.dialing.Load() == nil:
		return fmt.Sprintf("the server at %s is not a sidecar, or requires an encrypted connection; name another address with --addr, or add --tls", c.addr)
	}
	advice := "check that it is running there, or name another address with --addr"
	if listen.IsLocal(c.addr) {
		advice = "start one with: memsidecar serve --listen " + c.addr
	}
	return fmt.Sprintf("no sidecar at %s%s; %s", c.addr, c.obstacle(), advice)
}

// handshake returns why an encrypted connection failed, or "". A server's refusal comes after the client considers the handshake
// finished.
func handshake(s *status.Status) string {
	for _, before := range []string{"authentication handshake failed: ", "remote error: "} {
		if _, why, ok := strings.Cut(s.Message(), before); ok {
			return strings.TrimPrefix(strings.TrimSuffix(why, `"`), "tls: ")
		}
	}
	return ""
}

// violations returns a message with all invalid fields. It names their flags.
func violations(s *status.Status) string {
	var list []string
	for _, detail := range s.Details() {
		if bad, ok := detail.(*errdetails.BadRequest); ok {
			for _, v := range bad.GetFieldViolations() {
				problem := strings.TrimSpace(strings.TrimPrefix(v.GetDescription(), v.GetField()))
				list = append(list, block(flagOf(v.GetField())+" "+problem))
			}
		}
	}
	switch len(list) {
	case 0:
		return block(s.Message())
	case 1:
		return list[0]
	}
	return "the sidecar refuses this:\n  " + strings.Join(list, "\n  ")
}

// flagOf returns the flag for a field of a request.
func flagOf(field string) string {
	switch field {
	case "scope.namespace", "scope.session_id", "scope.agent_id", "scope.user_id", "scope.channel_id":
		return "--" + strings.TrimSuffix(strings.TrimPrefix(field, "scope."), "_id")
	case "scope.channel_kind", "memory.kind", "memory.importance", "settings.time_zone", "settings.language", "settings.memorize_every",
		"session.title", "session.memorize_every":
		_, name, _ := strings.Cut(field, ".")
		return "--" + strings.ReplaceAll(name, "_", "-")
	case "top_k", "min_relevance", "max_context_chars", "filter", "request_id", "wait", "max_messages", "max_turns", "max_chars", "language", "max_entries":
		return "--" + strings.ReplaceAll(field, "_", "-")
	case "memory.observe_time", "messages[0].send_time":
		return "--time"
	case "created_after_time":
		return "--after"
	case "created_before_time":
		return "--before"
	case "messages[0].id", "messages[0].speaker_id":
		return "--" + strings.TrimSuffix(strings.TrimPrefix(field, "messages[0]."), "_id")
	case "messages[0].metadata_json", "session.metadata_json":
		return "--metadata"
	case "start_position", "recent_messages", "turn_id":
		name, _, _ := strings.Cut(field, "_")
		return "--" + name
	case "revision_id":
		return "--revision"
	case "max_users":
		return "--limit"
	case "max_examples":
		return "--examples"
	case "neighbor_count":
		return "--neighbors"
	case "labels":
		return "--label"
	case "max_topics":
		return "--top"
	case "after_time", "before_time":
		return "--" + strings.TrimSuffix(field, "_time")
	case "list":
		return "--list"
	case "registry_kind":
		return "--registry"
	case "text":
		return "the number"
	case "scope":
		return "this"
	case "day":
		return "the day"
	case "query":
		return "the query"
	case "memory.text", "messages[0].content":
		return "the text"
	case "memory_id", "memory.id", "consideration_id", "trace_id":
		return "the id"
	}
	return field
}

// serverMessage returns the sidecar's own message. It names the fields of requests that were made from a file, not from flags.
func serverMessage(err error) string {
	if e := (*Error)(nil); errors.As(err, &e) && e.cause != nil {
		return status.Convert(e.cause).Message()
	}
	return err.Error()
}

// isFatal reports whether an error will affect all further items, too.
func isFatal(err error) bool {
	code := ExitCode(err)
	return code == ExitUnavailable || code == ExitInterrupted
}

// each calls a function for every id. It continues after errors that affect one id only.
func each(ids []string, do func(id string) error) error {
	var failed []error
	for _, id := range ids {
		if err := do(id); err != nil {
			if !strings.Contains(err.Error(), id) {
				err = wrapError(err, "%s", line(id))
			}
			failed = append(failed, err)
			if isFatal(err) {
				break
			}
		}
	}
	if len(failed) < 2 {
		return errors.Join(failed...)
	}
	return &Error{Code: ExitCode(failed[0]), Message: errors.Join(failed...).Error()}
}

// grace is the time that an interrupted command has to finish.
const grace = 10 * time.Second
