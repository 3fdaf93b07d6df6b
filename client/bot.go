package client

import (
	"context"
	"strings"

	"google.golang.org/grpc/status"

	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"
)

// Recollection is what [Client.Recall] brings. The zero value is a user of whom nothing is known.
type Recollection struct {
	// PromptContext goes into the system prompt as it is. It is empty when nothing was recalled.
	PromptContext string
	// Memories are the same, best first, with their scores.
	Memories []*memsidecarv1.RetrievedMemory
	// Reason says why memories may be missing: the sidecar could not be asked, or had to do without a part of itself. It is
	// empty when all is well.
	Reason string
	// TraceID names the sidecar's record of the call; empty when there is none.
	TraceID string
}

// Recall returns what is remembered of the scope's user that helps to answer the query, which is best what the user just said.
// Whatever happens, it returns within the timeout for recalling (see [WithRecallTimeout]) and the bot can answer: without the
// sidecar the recollection is empty, and why is in its Reason and told to [WithOnError].
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
		PromptContext: answer.GetPromptContext(), Memories: answer.GetMemories(), Reason: strings.Join(missing, "; "), TraceID: answer.GetTraceId(),
	}
}

// Remember hands a dialogue over to be considered: what the user said, and what the bot answered. It returns as soon as the
// dialogue is on the sidecar's disk, which takes some milliseconds; what is worth remembering is worked out in the background.
//
// When the sidecar is away it is tried again until the timeout for remembering (see [WithRememberTimeout]). Then nil is returned,
// [WithOnError] is told why, and the dialogue is not remembered, unless the bot hands it over once more.
func (c *Client) Remember(ctx context.Context, scope *memsidecarv1.Scope, dialogue ...*memsidecarv1.Message) *memsidecarv1.Consideration {
	ctx, cancel := context.WithTimeout(ctx, c.options.remember)
	defer cancel()
	answer, err := c.Memory.ConsiderMemorizing(ctx, &memsidecarv1.ConsiderMemorizingRequest{Scope: scope, Messages: dialogue})
	if err != nil {
		c.options.onError(ctx, "Remember", err)
		return nil
	}
	return answer.GetConsideration()
}

// Direct is the scope of a chat with the user alone.
func Direct(user string) *memsidecarv1.Scope {
	return &memsidecarv1.Scope{UserId: user, ChannelKind: memsidecarv1.ChannelKind_CHANNEL_KIND_DIRECT}
}

// Group is the scope of what a user says in a group, which sees only what was learned there.
func Group(user, channel string) *memsidecarv1.Scope {
	return &memsidecarv1.Scope{UserId: user, ChannelKind: memsidecarv1.ChannelKind_CHANNEL_KIND_GROUP, ChannelId: channel}
}

// Said is a message of the scope's user.
func Said(text string) *memsidecarv1.Message {
	return &memsidecarv1.Message{Role: memsidecarv1.Role_ROLE_USER, Content: text}
}

// Answered is a message of the bot.
func Answered(text string) *memsidecarv1.Message {
	return &memsidecarv1.Message{Role: memsidecarv1.Role_ROLE_ASSISTANT, Content: text}
}
