package client

import (
	"context"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/status"

	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"
)

// Recollection is the result of [Client.Recall]. The zero value means that nothing is remembered.
type Recollection struct {
	// PromptContext is text for the system prompt, to be used unchanged. It is empty when nothing was recalled.
	PromptContext string
	// Standing is what every answer must respect: the user's safety, name, and wishes about answers. It is part of PromptContext.
	Standing []*memsidecarv1.Memory
	// Memories are the other memories with their scores, best first.
	Memories []*memsidecarv1.RetrievedMemory
	// Reason says why memories may be missing: the sidecar could not be reached, or part of it was unavailable. It is empty when nothing
	// went wrong.
	Reason string
	// TraceID is the id of the call's trace in the sidecar; empty when there is no trace.
	TraceID string
}

// Recall returns memories of the scope's user that help to answer the query. The best query is the user's latest message. Recall always
// returns within its timeout (see [WithRecallTimeout]). If the sidecar fails, the recollection is empty, and the error is in its Reason and
// passed to the [WithOnError] hook.
func (c *Client) Recall(ctx context.Context, scope *memsidecarv1.Scope, query string) Recollection {
	ctx, cancel := context.WithTimeout(ctx, c.options.recall)
	defer cancel()
	answer, err := c.Memory.Retrieve(ctx, &memsidecarv1.RetrieveRequest{Scope: scope, Query: query})
	if err != nil {
		c.options.onError(ctx, "Recall", err)
		return Recollection{Reason: status.Convert(err).Message()}
	}
	var missing []string
	for _, d := range answer.GetDegraded() {
		missing = append(missing, d.GetReason())
	}
	return Recollection{
		PromptContext: answer.GetPromptContext(), Standing: answer.GetStanding(), Memories: answer.GetMemories(),
		Reason: strings.Join(missing, "; "), TraceID: answer.GetTraceId(),
	}
}

// Remember sends a dialogue to be considered: the user's message and the bot's answer. It returns when the dialogue is on the sidecar's
// disk, which takes a few milliseconds; the sidecar decides in the background what to remember.
//
// While the sidecar is unavailable, Remember waits until its timeout (see [WithRememberTimeout]), so that a restart of the sidecar loses
// nothing. After the timeout it returns nil and passes the error to the [WithOnError] hook. Then the dialogue is not remembered unless the
// bot sends it again.
func (c *Client) Remember(ctx context.Context, scope *memsidecarv1.Scope, dialogue ...*memsidecarv1.Message) *memsidecarv1.Consideration {
	ctx, cancel := context.WithTimeout(ctx, c.options.remember)
	defer cancel()
	answer, err := c.Memory.ConsiderMemorizing(ctx, &memsidecarv1.ConsiderMemorizingRequest{Scope: scope, Messages: dialogue}, grpc.WaitForReady(true))
	if err != nil {
		c.options.onError(ctx, "Remember", err)
		return nil
	}
	return answer.GetConsideration()
}

// Direct returns the scope of a direct chat with the user.
func Direct(user string) *memsidecarv1.Scope {
	return &memsidecarv1.Scope{UserId: user, ChannelKind: memsidecarv1.ChannelKind_CHANNEL_KIND_DIRECT}
}

// Group returns the scope of a user in a group. It sees only what was learned in that group.
func Group(user, channel string) *memsidecarv1.Scope {
	return &memsidecarv1.Scope{UserId: user, ChannelKind: memsidecarv1.ChannelKind_CHANNEL_KIND_GROUP, ChannelId: channel}
}

// Said returns a message of the scope's user.
func Said(text string) *memsidecarv1.Message {
	return &memsidecarv1.Message{Role: memsidecarv1.Role_ROLE_USER, Content: text}
}

// Answered returns a message of the bot.
func Answered(text string) *memsidecarv1.Message {
	return &memsidecarv1.Message{Role: memsidecarv1.Role_ROLE_ASSISTANT, Content: text}
}
