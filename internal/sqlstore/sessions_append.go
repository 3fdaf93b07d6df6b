package sqlstore

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/session"
	"github.com/memsidecar/memsidecar/internal/sqlstore/sqldb"
)

// leadingContext is how many messages of the bot are kept as context for the next user message. It applies while no user message is
// pending.
const leadingContext = 20

// Append implements session.Store.
func (s *Sessions) Append(ctx context.Context, a session.Append) (done session.Appended, err error) {
	texts, err := encodeMessages(a.Messages)
	if err != nil {
		return done, err
	}
	err = s.db.Write(ctx, func(tx sqldb.Tx) error {
		w, err := s.appendMessages(ctx, tx, a, texts, nil, "")
		if err != nil {
			return err
		}
		s.cache.put(tx, a.Scope, w.session, w.users)
		done = w.done
		return s.Quotas.historyWithin(ctx, tx, w)
	})
	return done, s.Quotas.Note(err)
}

func encodeMessages(messages []memory.Message) ([]string, error) {
	texts := make([]string, len(messages))
	for i := range messages {
		text, err := json.Marshal(&messages[i])
		if err != nil {
			return nil, err
		}
		texts[i] = string(text)
	}
	return texts, nil
}

// appending is the state of one call of Append.
type appending struct {
	*session.Append
	at       time.Time
	session  *sessionRow
	users    map[string]int64 // rows of the users in the messages
	agents   []string         // of the added messages, without duplicates
	spoken   map[string]int64 // number of added messages by agent
	anybody  bool             // memories are kept of at least one of the users
	outcomes []outcome        // of the messages, in order
	done     session.Appended
	people   int64   // added messages of users to consider
	before   int64   // the last position before the import
	joined   []int64 // rows of the users who wrote the added messages
	renamed  bool    // the participants changed, so the session is read again
	taker    string  // consideration of the added messages; it saves the session as well
	// digested counts, by user id, the added messages that the user wrote and that are pending for a digest.
	digested map[string]int64
	stored   map[int64]int64 // bytes added for each owner, by row; 0 is the row of messages without an owner
}

// outcome is the result for a message.
type outcome struct {
	position      int64
	settled       bool // not pending for a consideration
	added         bool
	consideration string // id of the one that considered the message before, or ""
}

// appendMessages appends the messages that the session does not have, except those that leftOut marks: their outcomes have no position.
// texts are the messages as JSON.
func (s *Sessions) appendMessages(
	ctx context.Context, tx sqldb.Tx, a session.Append, texts []string, leftOut []bool, taker string,
) (*appending, error) {
	w := &appending{
		Append: &a, at: a.At.Truncate(time.Microsecond).UTC(), users: map[string]int64{}, spoken: map[string]int64{},
		digested: map[string]int64{}, stored: map[int64]int64{}, outcomes: make([]outcome, len(a.Messages)), taker: taker,
	}
	if err := w.resolve(ctx, tx, s.cache); err != nil {
		return nil, err
	}
	w.anybody = a.Scope.UserID != "" && !a.Paused[a.Scope.UserID]
	for i := range a.Messages {
		w.anybody = w.anybody || w.considerable(&a.Messages[i])
	}
	before := w.session.Last
	if w.before = before; a.Import != nil && a.Import.From > 0 {
		w.before = a.Import.Before
	}
	for i := range a.Messages {
		if len(leftOut) > i && leftOut[i] {
			continue
		}
		known, err := w.has(ctx, tx, i, texts[i])
		if err == nil && !known {
			err = w.add(ctx, tx, i, texts[i])
		}
		if err != nil {
			return nil, err
		}
	}
	if w.done.Created || w.done.Added > 0 {
		if err := w.finish(ctx, tx, before); err != nil {
			return nil, err
		}
	}
	for _, f := range w.outcomes {
		w.done.Positions = append(w.done.Positions, f.position)
	}
	w.done.Session = w.session.Session
	return w, nil
}

// resolve finds the session, or creates it.
func (w *appending) resolve(ctx context.Context, tx sqldb.Tx, cache *sessionCache) (err error) {
	scope := w.Scope
	id := scope.SessionID
	w.session = cache.get(scope)
	switch {
	case w.session != nil:
	case id == "":
		w.session, err = currentSession(ctx, tx, scope.Namespace, scope.UserID, scope.Channel)
	default:
		v := session.Viewer{Namespace: scope.Namespace, UserID: scope.UserID, Channel: scope.Channel}
		w.session, err = sessionToWrite(ctx, tx, v, id)
	}
	if err != nil {
		return err
	}
	if w.session != nil {
		viewer := session.Viewer{Namespace: scope.Namespace, UserID: scope.UserID, Channel: scope.Channel, Audience: w.Audience}
		if err := w.session.refused(viewer); err != nil {
			return err
		}
	} else {
		if id == "" {
			id = w.NewID
		}
		if w.session, err = newSession(ctx, tx, scope, id, w.Import, w.at); err != nil {
			return err
		}
		w.done.Created = true
	}
	if !w.done.Created || scope.SessionID != "" {
		return nil
	}
	if scope.Channel.Kind == memory.ChannelGroup {
		return setCurrent(ctx, tx, w.session, groupRow, scope.Channel)
	}
	user, err := w.user(ctx, tx, scope.UserID)
	if err != nil || user == 0 {
		return err
	}
	return setCurrent(ctx, tx, w.session, user, scope.Channel)
}

// user returns the row of a user; 0 without a user.
func (w *appending) user(ctx context.Context, tx sqldb.Tx, id string) (row int64, err error) {
	if id == "" {
		return 0, nil
	}
	row, ok := w.users[id]
	if ok {
		return row, nil
	}
	if row, ok = w.session.users[id]; !ok {
		if row, err = EnsureUserRow(ctx, tx, memory.User{Namespace: w.Scope.Namespace, ID: id}); err != nil {
			return 0, err
		}
	}
	w.users[id] = row
	return row, nil
}

// considerable reports whether the message is from a user whose memories are kept.
func (w *appending) considerable(m *memory.Message) bool {
	return m.Role == memory.RoleUser && m.Speaker != "" && !w.Paused[m.Speaker]
}

func (w *appending) hash(i int) []byte {
	if i < len(w.Hashes) && w.Hashes[i] != nil {
		return w.Hashes[i]
	}
	return []byte{}
}

// has reports whether the session has the i-th message, in the sent or the stored form, and sets its outcome. An exported message is in
// the stored form, with defaults filled in.
func (w *appending) has(ctx context.Context, tx sqldb.Tx, i int, text string) (bool, error) {
	if w.session.Last == 0 {
		return false, nil
	}
	id := w.Messages[i].ID
	const columns = `SELECT position, hash, message, settled, coalesce(consideration, '') FROM session_messages WHERE session_row = ? AND `
	var row *sql.Row
	switch {
	case id != "":
		row = tx.QueryRow(ctx, columns+`id = ?`, w.session.row, id)
	case w.Import != nil && w.Import.From+int64(i) < w.before:
		row = tx.QueryRow(ctx, columns+`position = ?`, w.session.row, w.Import.From+int64(i)+1)
	default:
		return false, nil
	}
	var f outcome
	var hash []byte
	var stored string
	err := row.Scan(&f.position, &hash, &stored, &f.settled, &f.consideration)
	switch same := bytes.Equal(hash, w.hash(i)) || stored == text; {
	case errors.Is(err, sql.ErrNoRows), err == nil && !same && id == "":
		return false, nil
	case err == nil && !same:
		err = memory.Invalid(fmt.Sprintf("messages[%d].id", i),
			"is the id of another message of this session (at position %d): give each message an id of its own", f.position)
	}
	w.outcomes[i] = f
	return err == nil, err
}

// noteForDigest returns the message's state for digests, and counts the messages that are pending for one.
func (w *appending) noteForDigest(m *memory.Message, owner int64, withheld bool) any {
	state := w.digestState(m, owner, withheld)
	if state == digestAutomatic {
		n := int64(0)
		if m.Role == memory.RoleUser {
			n = 1
		}
		w.digested[session.Owner(m, w.Scope.UserID)] += n
	}
	return state
}

// add appends the i-th message.
func (w *appending) add(ctx context.Context, tx sqldb.Tx, i int, text string) error {
	m, s := &w.Messages[i], w.session
	owner, err := w.user(ctx, tx, session.Owner(m, w.Scope.UserID))
	if err != nil {
		return err
	}
	agent := m.AgentID
	if agent == "" {
		agent = w.Scope.AgentID // the agent to which the message was sent
	}
	why := session.NotExcluded
	if i < len(w.Excluded) {
		why = w.Excluded[i]
	}
	withheld := why != session.NotExcluded
	settled := w.Settled || withheld
	if m.Role == memory.RoleUser {
		settled = settled || !w.considerable(m)
	} else {
		settled = settled || !w.anybody
	}
	state := w.noteForDigest(m, owner, withheld)
	s.Last++
	w.outcomes[i] = outcome{position: s.Last, settled: settled, added: true}
	taker := w.taker
	if settled {
		taker = ""
	}
	row, err := tx.Insert(ctx, `INSERT INTO session_messages (session_row, position, owner_row, id, hash, role, agent_id, withheld,
		settled, consideration, message, said_at, received_at, digest)
		VALUES (?, ?, nullif(?, 0), nullif(?, ''), ?, ?, ?, ?, ?, nullif(?, ''), ?, ?, ?, ?)`,
		s.row, s.Last, owner, m.ID, w.hash(i), string(m.Role), agent, int(why), settled || taker != "", taker, text, sqldb.Micros(m.Time),
		sqldb.Micros(w.at), state)
	if err != nil {
		return err
	}
	if err := countTail(ctx, tx, row); err != nil {
		return err
	}
	w.done.Added++
	w.stored[owner] += int64(len(text))
	if agent != "" {
		if w.spoken[agent] == 0 {
			w.agents = append(w.agents, agent)
		}
		w.spoken[agent]++
	}
	said := m.Time.Truncate(time.Microsecond).UTC()
	if s.Messages == 0 || said.Before(s.FirstSaidAt) {
		s.FirstSaidAt = said
	}
	if s.Messages == 0 || said.After(s.LastSaidAt) {
		s.LastSaidAt = said
	}
	s.Messages++
	if m.Role == memory.RoleUser {
		s.UserMessages++
		if owner != 0 {
			w.joined = append(w.joined, owner)
		}
		if !settled {
			w.people++
		}
	}
	return nil
}

// finish updates the session. before is the last position before this call.
func (w *appending) finish(ctx context.Context, tx sqldb.Tx, before int64) error {
	s := w.session
	if err := w.takePart(ctx, tx); err != nil {
		return err
	}
	w.renamed = w.renamed || w.done.Created
	if w.done.Added > 0 {
		if s.Messages == int64(w.done.Added) {
			s.oldestAt = w.at
		}
		if err := w.renewWindow(ctx, tx, before); err != nil {
			return err
		}
		if err := w.limitLeading(ctx, tx); err != nil {
			return err
		}
		if err := w.scheduleDigests(ctx, tx); err != nil {
			return err
		}
		if err := w.touchUsers(ctx, tx); err != nil {
			return err
		}
		s.ActiveAt = w.at
		s.Unconsidered += w.people
	}
	switch {
	case w.Import != nil && !w.Import.UpdatedAt.IsZero():
		if updated := w.Import.UpdatedAt.Truncate(time.Microsecond).UTC(); updated.After(s.UpdatedAt) {
			s.UpdatedAt = updated
		}
	case w.done.Added > 0:
		s.UpdatedAt = w.at
	}
	s.defaultEvery, s.idle = w.Rules.MemorizeEvery, w.Rules.Pause()
	s.schedule(w.at)
	if err := s.scheduleSummary(ctx, tx, w.Rules.SummarizeAfter, w.at); err != nil {
		return err
	}
	if w.taker == "" || w.renamed {
		if err := s.save(ctx, tx); err != nil {
			return err
		}
	}
	if !w.renamed {
		return nil
	}
	saved, err := findSession(ctx, tx, s.Namespace, s.Ref, w.Scope.UserID)
	if err == nil {
		w.session = saved
	}
	return err
}

// touchUsers records that the owners of the messages were active.
func (w *appending) touchUsers(ctx context.Context, tx sqldb.Tx) error {
	for _, row := range slices.Sorted(maps.Keys(w.stored)) {
		if row == 0 {
			continue
		}
		if err := TouchUser(ctx, tx, row, w.at); err != nil {
			return err
		}
	}
	return nil
}

// takesPart reports whether the user is a listed participant. A session with very many participants does not list all of them.
func (w *appending) takesPart(userRow int64) bool {
	for id, row := range w.users {
		if row == userRow {
			return slices.Contains(w.session.Participants, id)
		}
	}
	return false
}

// takePart adds new participants.
func (w *appending) takePart(ctx context.Context, tx sqldb.Tx) error {
	user, err := w.user(ctx, tx, w.Scope.UserID)
	if err != nil {
		return err
	}
	rows := w.joined
	if user != 0 {
		rows = append([]int64{user}, rows...)
	}
	seen := map[int64]bool{}
	for _, row := range rows {
		if seen[row] {
			continue
		}
		seen[row] = true
		if w.takesPart(row) {
			continue
		}
		before := w.session.participants
		if err := w.session.join(ctx, tx, row); err != nil {
			return err
		}
		w.renamed = w.renamed || w.session.participants > before
	}
	for _, agent := range w.agents {
		known, err := tx.Affect(ctx, `UPDATE session_agents SET messages = messages + ? WHERE session_row = ? AND agent_id = ?`,
			w.spoken[agent], w.session.row, agent)
		if err != nil {
			return err
		}
		if known > 0 {
			continue
		}
		w.renamed = true
		_, err = tx.Exec(ctx, `INSERT INTO session_agents (session_row, number, agent_id, messages)
			SELECT ?1, coalesce(max(number), 0) + 1, ?2, ?3 FROM session_agents WHERE session_row = ?1`,
			w.session.row, agent, w.spoken[agent])
		if err != nil {
			return err
		}
	}
	return nil
}

// renewWindow starts a new window if the previous one expired.
func (w *appending) renewWindow(ctx context.Context, tx sqldb.Tx, before int64) error {
	s, ttl := w.session, w.Rules.TTL
	if ttl <= 0 || s.ActiveAt.IsZero() || w.at.Before(s.ActiveAt.Add(ttl)) {
		return nil
	}
	s.WindowStart = before + 1
	s.summarizeAt = time.Time{}
	s.revision++
	_, err := tx.Exec(ctx, `DELETE FROM session_summaries WHERE session_row = ?`, s.row)
	return err
}

// limitLeading limits the messages that a bot sends without an answer: only the last ones are context for the next message of a user.
func (w *appending) limitLeading(ctx context.Context, tx sqldb.Tx) error {
	if w.session.Unconsidered > 0 || w.people > 0 {
		return nil
	}
	_, err := tx.Exec(ctx, `UPDATE session_messages INDEXED BY session_messages_unsettled SET settled = 1
		WHERE session_row = ? AND settled = 0 AND position <= ?`, w.session.row, w.session.Last-leadingContext)
	return err
}

// scheduleSummary makes a summary due if the summary for all agents does not cover enough of the window.
func (s *sessionRow) scheduleSummary(ctx context.Context, tx sqldb.Tx, after int64, at time.Time) error {
	if after <= 0 {
		s.summarizeAt = time.Time{}
		return nil
	}
	if !s.summarizeAt.IsZero() {
		return nil // due, or postponed
	}
	if s.Last-s.WindowStart+1 <= after {
		return nil // the window is short enough
	}
	var covered int64
	err := tx.QueryRow(ctx, `SELECT last_position FROM session_summaries WHERE session_row = ? AND agent_id = ''`, s.row).Scan(&covered)
	if err := sqldb.Optional(err); err != nil {
		return err
	}
	if s.Last-max(covered, s.WindowStart-1) > after {
		s.summarizeAt = at
	}
	return nil
}
