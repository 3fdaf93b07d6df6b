package cli

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"

	"google.golang.org/protobuf/proto"

	"github.com/memsidecar/memsidecar/cmd/memsidecar/internal/migrate"
	"github.com/memsidecar/memsidecar/internal/decide"
	"github.com/memsidecar/memsidecar/internal/vectorstore"
	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"
)

// Limits of a batch, in memories and bytes.
const (
	batchMemories = 500
	batchBytes    = 4 << 20
)

// userBatch is a batch of one user's memories, with their places in the files.
type userBatch struct {
	user     string
	memories []*memsidecarv1.Memory
	from     []*part
	lines    []int
}

// existingMemories are a user's stored memories: ids, and texts with equal visibility.
type existingMemories map[[16]byte]struct{}

func (k existingMemories) has(what, value string) bool {
	_, ok := k[existingKey(what, value)]
	return ok
}

func (k existingMemories) add(what, value string) { k[existingKey(what, value)] = struct{}{} }

func existingKey(what, value string) [16]byte {
	sum := sha256.Sum256([]byte(what + "\x00" + value))
	return [16]byte(sum[:16])
}

// check reads all files completely, and counts. Standard input can be read only once.
func (m *importer) check(ctx context.Context, sources []source) error {
	for _, s := range sources {
		if s.path == stdinName {
			m.total = -1
			continue
		}
		n := 0
		err := m.open(ctx, s.path, func(in io.Reader) error {
			return s.read(in, m.options, migrate.Sink{
				Skip: func(migrate.Skipped) {},
				Item: func(item migrate.Item) error {
					n++
					if err := ctx.Err(); err != nil {
						return err
					}
					return m.checkOneUser(s.path, item)
				},
			})
		})
		if ctx.Err() != nil {
			return interrupted("; nothing was sent")
		}
		if err != nil {
			return err
		}
		if m.total >= 0 {
			m.total += n
		}
	}
	return nil
}

// checkOneUser returns an error if several users would be merged into one.
func (m *importer) checkOneUser(path string, item migrate.Item) error {
	if m.users.Users != "" || m.users.FromUser != "" || item.User == "" || item.User == m.owner {
		return nil
	}
	if m.owner == "" {
		m.owner = item.User
		return nil
	}
	return usage("%s: line %d: the memories are of several users, such as %s and %s: import all with --users all, or one with --from-user ID",
		inputName(path), item.Line, line(m.owner), line(item.User))
}

// memories imports the files one by one.
func (m *importer) memories(ctx context.Context, sources []source) error {
	bar := m.p.progress(m.total, "memories")
	for _, s := range sources {
		to := m.report.part(inputName(s.path), "memories")
		err := m.open(ctx, s.path, func(in io.Reader) error {
			return s.read(in, m.options, migrate.Sink{Skip: to.skip, Item: func(item migrate.Item) error {
				if err := m.checkOneUser(s.path, item); err != nil {
					return err
				}
				if err := m.add(ctx, to, item); err != nil {
					return err
				}
				return bar.Add(1)
			}})
		})
		if err == nil || ctx.Err() == nil && ExitCode(err) == ExitUsage { // the items before the mistake are valid
			err = errors.Join(err, m.flush(ctx))
		}
		if err != nil {
			return errors.Join(err, bar.Finish())
		}
	}
	return bar.Finish()
}

// userOf returns the user of an item, or why it is skipped.
func (m *importer) userOf(item migrate.Item) (user string, left *migrate.Skipped) {
	switch {
	case m.users.FromUser != "" && item.User != m.users.FromUser:
		return "", &migrate.Skipped{Line: item.Line, Reason: "it belongs to another user, or to none"}
	case m.users.Users == "":
		return m.User, nil
	case item.User == "":
		return "", &migrate.Skipped{Line: item.Line, Reason: "it names no user: import it with --user", Bad: true}
	}
	return item.User, nil
}

// add queues an item, unless it is skipped or exists already.
func (m *importer) add(ctx context.Context, to *part, item migrate.Item) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	user, left := m.userOf(item)
	if left != nil {
		to.skip(*left)
		return nil
	}
	existing, err := m.existingOf(ctx, user)
	if err != nil {
		return err
	}
	memory := item.Memory
	if item.SourceID != "" {
		memory.Id = decide.MemoryID("import", m.format, user, m.visibility(m.scope), item.SourceID)
	}
	words := vectorstore.TextKey(memory.GetText())
	switch {
	case memory.GetId() != "" && existing.has("id", memory.GetId()):
		to.there++
		return nil
	case existing.has("text", words):
		to.there++
		return nil
	}
	existing.add("text", words)
	if memory.GetId() != "" {
		existing.add("id", memory.GetId())
	}
	m.setAgent(memory)
	m.queue(user, to, item.Line, memory)
	if m.queued >= batchMemories || m.bytes >= batchBytes {
		return m.flush(ctx)
	}
	return nil
}

// setAgent adds the agent, unless the file names one.
func (m *importer) setAgent(memory *memsidecarv1.Memory) {
	if memory.GetScope() == nil {
		memory.Scope = &memsidecarv1.Scope{}
	}
	if memory.GetScope().GetAgentId() == "" {
		memory.Scope.AgentId = m.Agent
	}
}

func (m *importer) queue(user string, to *part, line int, memory *memsidecarv1.Memory) {
	i := slices.IndexFunc(m.batches, func(p *userBatch) bool { return p.user == user })
	if i < 0 {
		m.batches, i = append(m.batches, &userBatch{user: user}), len(m.batches)
	}
	p := m.batches[i]
	p.memories, p.from, p.lines = append(p.memories, memory), append(p.from, to), append(p.lines, line)
	m.queued++
	m.bytes += proto.Size(memory)
}

// visibility returns a key that is equal for channels with the same audience.
func (m *importer) visibility(scope *memsidecarv1.Scope) string {
	if scope.GetChannelKind() == memsidecarv1.ChannelKind_CHANNEL_KIND_GROUP {
		return "group:" + scope.GetChannelId()
	}
	return scope.GetChannelKind().String()
}

// existingOf returns the stored memories of a user.
func (m *importer) existingOf(ctx context.Context, user string) (existingMemories, error) {
	if existing := m.existing[user]; existing != nil {
		return *existing, nil
	}
	existing := existingMemories{}
	request := &memsidecarv1.ListMemoriesRequest{
		Scope:    &memsidecarv1.Scope{Namespace: m.scope.GetNamespace(), UserId: user, ChannelKind: memsidecarv1.ChannelKind_CHANNEL_KIND_DIRECT},
		PageSize: 1000,
	}
	for number := range memoryStateNames {
		request.States = append(request.States, memsidecarv1.MemoryState(number))
	}
	for more := true; more; more = request.GetPageToken() != "" {
		resp, err := m.conn.ListMemories(ctx, request)
		if err != nil {
			return nil, err
		}
		for _, memory := range resp.GetMemories() {
			existing.add("id", memory.GetId())
			// Superseded and withdrawn memories only exist by id, as for the sidecar.
			gone := memory.GetState() == memsidecarv1.MemoryState_MEMORY_STATE_SUPERSEDED || memory.GetState() == memsidecarv1.MemoryState_MEMORY_STATE_WITHDRAWN
			if !gone && m.visibility(memory.GetScope()) == m.visibility(m.scope) {
				existing.add("text", vectorstore.TextKey(memory.GetText()))
			}
		}
		request.PageToken = resp.GetNextPageToken()
	}
	m.existing[user] = &existing
	return existing, nil
}

// flush sends the pending batches.
func (m *importer) flush(ctx context.Context) error {
	parts := m.batches
	m.batches, m.queued, m.bytes = nil, 0, 0
	for _, p := range parts {
		if err := ctx.Err(); err != nil {
			return err
		}
		added := int64(len(p.memories))
		if !m.DryRun {
			resp, err := m.send(ctx, p)
			if err != nil {
				return p.explain(err)
			}
			added = resp.GetAddedCount()
			m.stored += int(added)
		}
		p.count(added)
	}
	return nil
}

// count records how many memories were added. Other callers stored the rest in the meantime.
func (p *userBatch) count(added int64) {
	for i, to := range p.from {
		if int64(i) < added {
			to.added++
		} else {
			to.there++
		}
	}
}

// send sends one user's memories. An interruption does not cancel a call in progress: the answer says how much was stored.
func (m *importer) send(ctx context.Context, p *userBatch) (*memsidecarv1.ImportMemoriesResponse, error) {
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	stop := context.AfterFunc(ctx, func() { afterGrace(running, cancel) })
	defer stop()
	stream, err := m.conn.ImportMemories(running)
	if err != nil {
		return nil, err
	}
	scope := proto.CloneOf(m.scope)
	scope.UserId = p.user
	err = stream.Send(&memsidecarv1.ImportMemoriesRequest{Item: &memsidecarv1.ImportMemoriesRequest_Scope{Scope: scope}})
	for i := 0; err == nil && i < len(p.memories); i++ {
		err = stream.Send(&memsidecarv1.ImportMemoriesRequest{Item: &memsidecarv1.ImportMemoriesRequest_Memory{Memory: p.memories[i]}})
	}
	if err != nil && !errors.Is(err, io.EOF) { // io.EOF: the sidecar ended the call; the answer has the error
		return nil, err
	}
	return stream.CloseAndRecv()
}

// explain names files and lines instead of positions.
func (p *userBatch) explain(err error) error {
	message := position.ReplaceAllStringFunc(err.Error(), func(found string) string {
		i, err := strconv.Atoi(position.FindStringSubmatch(found)[1])
		if err != nil || i >= len(p.lines) {
			return found
		}
		return fmt.Sprintf("%s: line %d: ", p.from[i].file, p.lines[i])
	})
	return &Error{Code: ExitCode(err), Message: message, cause: err}
}
