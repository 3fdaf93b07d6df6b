package server_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/memsidecar/memsidecar/internal/sqlite"
	"github.com/memsidecar/memsidecar/internal/sqlstore"
	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"

	"github.com/memsidecar/memsidecar/internal/testkit/sidecartest"
)

// flipped are corrupt values in rows of anna's, as a flipped bit may leave them: the table and a statement that changes one row.
var flipped = []struct{ table, statement string }{
	{
		"memories",
		`UPDATE memories SET provenance = '{"quote":' WHERE text LIKE '%peanuts%' AND user_row = (SELECT id FROM users WHERE user_id = 'anna')`,
	},
	{
		"memories",
		`UPDATE memories SET text = CAST(x'49206c697665ff' AS TEXT) WHERE text LIKE '%Lisbon%' AND user_row = (SELECT id FROM users WHERE ` +
			`user_id = 'anna')`,
	},
	{
		"memories",
		`UPDATE memories SET created_at = 9000000000000000000 WHERE text LIKE '%piano%' AND user_row = (SELECT id FROM users WHERE user_id = 'anna')`,
	},
	{
		"memories",
		`UPDATE memories SET importance = -1e300 WHERE text LIKE '%vegetarian%' AND user_row = (SELECT id FROM users WHERE user_id = 'anna')`,
	},
	{
		"embeddings",
		`UPDATE embeddings SET vector = x'000080' WHERE memory_row = (SELECT row FROM memories WHERE text LIKE '%dentist%' AND user_row = ` +
			`(SELECT id FROM users WHERE user_id = 'anna'))`,
	},
	{"session_messages", `UPDATE session_messages SET message = replace(message, '"content"', '"content') WHERE message LIKE '%boats%'`},
	{"session_messages", `UPDATE session_messages SET message = CAST(x'7bff7d' AS TEXT) WHERE message LIKE '%harbours%'`},
	{"traces", `UPDATE traces SET record = substr(record, 2) WHERE row = (SELECT min(row) FROM traces)`},
	{"considerations", `UPDATE considerations SET outcome = '[' WHERE seq = (SELECT min(seq) FROM considerations)`},
	{"result_items", `UPDATE result_items SET title = CAST(x'ff' AS TEXT) WHERE row = (SELECT min(row) + 1 FROM result_items)`},
	{"dialogues", `UPDATE dialogues SET messages = '[{"role"' WHERE row = (SELECT max(row) FROM dialogues WHERE user_id = 'anna')`},
}

// TestUnreadableRowsAreSkippedAndReported: Lists skip rows that cannot be decoded. Requests for such a row return DATA_LOSS. Logs name
// the rows without their text; a metric counts them; check finds them. They can be deleted, and ForgetUser still works.
func TestUnreadableRowsAreSkippedAndReported(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r := sidecartest.ServeIn(t, dir, sidecartest.HTTPListen)
	for _, text := range []string{
		"I am allergic to peanuts.", "I live in Lisbon and work as a nurse.", "I play the piano every Sunday with my brother.",
		"I'm vegetarian.", "My dentist is Dr. Weber.", "I have a dog named Rex.",
	} {
		if c := r.Consider(t, sidecartest.Direct("anna"), sidecartest.Said(text)); c.GetState() != sidecartest.Remembered {
			t.Fatalf("%q is %s", text, c)
		}
	}
	_ = r.Consider(t, sidecartest.Direct("ben"), sidecartest.Said("I am allergic to peanuts."))
	scope := sidecartest.Direct("anna")
	scope.SessionId = "s1"
	sessions := memsidecarv1.NewSessionServiceClient(r.Conn)
	_ = sidecartest.Must(
		sessions.AppendMessages(t.Context(), &memsidecarv1.AppendMessagesRequest{Scope: scope, Messages: []*memsidecarv1.Message{
			sidecartest.Said("We talked about boats."), sidecartest.Said("And about harbours."), sidecartest.Said("And about lighthouses."),
		}}),
	)(
		t,
	)
	_ = r.Texts(t, sidecartest.Direct("anna"), "peanuts")
	_ = putItems(t, r, &memsidecarv1.PutItemsRequest{Scope: sidecartest.Direct("anna"), Items: listing(3)})
	ids := map[string]string{}
	for _, m := range sidecartest.AllMemories(t.Context(), t, r, sidecartest.Direct("anna")) {
		for _, word := range []string{"peanuts", "Lisbon", "piano", "vegetarian", "Weber"} {
			if strings.Contains(m.GetText(), word) {
				ids[word] = m.GetId()
			}
		}
	}
	r.Stop()
	for _, b := range flipped {
		sidecartest.ExecuteSQL(t, dir, b.statement)
	}

	report := sidecartest.Must(sqlite.Files{Checks: sqlstore.Checks()}.Check(t.Context(), sqlite.DatabasePath(dir), false))(t)
	var found []string
	for _, f := range report.Findings {
		found = append(found, f.Examples...)
	}
	all := strings.Join(found, "\n")
	for _, words := range []string{"peanuts", "Lisbon", "boats"} {
		if strings.Contains(all, words) {
			t.Errorf("check prints user text:\n%s", all)
		}
	}
	for _, kind := range []string{
		"memory mem_", "vector of memory mem_", "message 8 ", "message 9 ", "trace trc_", "item 2 ",
		"consideration 1 ", "dialogue con_",
	} {
		if !strings.Contains(all, kind) {
			t.Errorf("check finds no %s:\n%s", kind, all)
		}
	}
	for word, id := range ids {
		if !strings.Contains(all, id) {
			t.Errorf("check does not name %s (%s):\n%s", id, word, all)
		}
	}

	r = sidecartest.ServeIn(t, dir, sidecartest.HTTPListen)
	sessions = memsidecarv1.NewSessionServiceClient(r.Conn)
	var texts []string
	for _, m := range sidecartest.AllMemories(t.Context(), t, r, sidecartest.Direct("anna")) {
		texts = append(texts, m.GetText())
	}
	slices.Sort(texts)
	if len(texts) != 2 || !strings.Contains(texts[0], "dog") || !strings.Contains(texts[1], "dentist") {
		t.Errorf("listed %q", texts)
	}
	for query, want := range map[string]string{"dog Rex": "dog", "who is my dentist": "dentist"} {
		if got := r.Texts(t, sidecartest.Direct("anna"), query); !slices.ContainsFunc(
			got,
			func(s string) bool { return strings.Contains(s, want) },
		) {
			t.Errorf("%q retrieves %q", query, got)
		}
	}
	if got := r.Texts(t, sidecartest.Direct("ben"), "peanuts"); len(got) != 1 {
		t.Errorf("ben's are %q", got)
	}
	_, err := r.GetMemory(t.Context(), &memsidecarv1.GetMemoryRequest{Scope: sidecartest.Direct("anna"), MemoryId: ids["Lisbon"]})
	sidecartest.WantCode(t, err, codes.DataLoss)
	if !strings.Contains(fmt.Sprint(err), "memsidecar check") {
		t.Errorf("it has no remedy: %v", err)
	}
	_, err = r.GetMemory(
		t.Context(),
		&memsidecarv1.GetMemoryRequest{Scope: sidecartest.Group("anna", "elsewhere"), MemoryId: ids["Lisbon"]},
	)
	sidecartest.WantCode(t, err, codes.NotFound) // callers who may not see it learn nothing about it

	messages := sidecartest.Must(sessions.ListMessages(t.Context(), &memsidecarv1.ListMessagesRequest{Scope: scope}))(t).GetMessages()
	if len(messages) != 1 || !strings.Contains(fmt.Sprint(messages), "lighthouses") {
		t.Errorf("the messages are %s", messages)
	}
	if window := sidecartest.Must(sessions.GetContext(t.Context(), &memsidecarv1.GetContextRequest{Scope: scope}))(t); len(
		window.GetMessages(),
	) != 1 {
		t.Errorf("the window is %s", window)
	}
	hits := sidecartest.Must(r.Retrieve(t.Context(), &memsidecarv1.RetrieveRequest{
		Scope: sidecartest.Direct(
			"anna",
		), Query: "lighthouses", Sources: []memsidecarv1.RetrieveSource{memsidecarv1.RetrieveSource_RETRIEVE_SOURCE_MESSAGES},
	}))(t)
	if len(hits.GetMessages()) != 1 || len(hits.GetDegraded()) > 0 {
		t.Errorf("searching messages: %s", hits)
	}
	list := sidecartest.Must(lists(r).GetNumberedList(t.Context(), &memsidecarv1.GetNumberedListRequest{Scope: sidecartest.Direct("anna")}))(
		t,
	).GetNumberedList().
		GetItems()
	if len(list) != 3 || list[2].GetNumber() != 3 || !strings.Contains(list[1].GetItem().GetTitle(), "cannot be read") {
		t.Errorf("the numbered list is %s", list) // the other items keep their numbers
	}
	_ = sidecartest.Must(sessions.GetTopics(t.Context(), &memsidecarv1.GetTopicsRequest{Scope: sidecartest.Direct("anna")}))(t)
	considerations := sidecartest.Must(
		r.ListConsiderations(t.Context(), &memsidecarv1.ListConsiderationsRequest{Scope: sidecartest.Direct("anna")}),
	)(
		t,
	)
	if len(considerations.GetConsiderations()) < 6 {
		t.Errorf("the considerations are %s", considerations)
	}
	_ = sidecartest.Must(
		memsidecarv1.NewTraceServiceClient(r.Conn).
			ListTraces(t.Context(), &memsidecarv1.ListTracesRequest{Scope: sidecartest.Direct("anna")}),
	)(
		t,
	)
	export := sidecartest.Must(r.ExportUser(t.Context(), &memsidecarv1.ExportUserRequest{Scope: &memsidecarv1.Scope{UserId: "anna"}}))(t)
	for {
		if _, err := export.Recv(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("exporting: %v", err)
		}
	}

	log := r.Log.String()
	for _, text := range []string{ids["Lisbon"], ids["peanuts"]} {
		if n := strings.Count(log, text); n != 1 {
			t.Errorf("%s is logged %d times:\n%s", text, n, log)
		}
	}
	for _, words := range []string{"peanuts", "Lisbon", "boats", "I live"} {
		if strings.Contains(log, words) {
			t.Errorf("the log holds %q:\n%s", words, log)
		}
	}
	if _, values := r.Scrape(t); values[`unreadable_rows_total{table="memories"}`] != "4" {
		t.Errorf("counted are %q", values[`unreadable_rows_total{table="memories"}`])
	}

	_ = sidecartest.Must(
		r.DeleteMemory(t.Context(), &memsidecarv1.DeleteMemoryRequest{Scope: sidecartest.Direct("anna"), MemoryId: ids["Lisbon"]}),
	)(
		t,
	)
	if c := r.Consider(t, sidecartest.Direct("anna"), sidecartest.Said("I am allergic to peanuts.")); c.GetState() != sidecartest.Remembered {
		t.Errorf("an unreadable statement is stored again: %s", c)
	}
	_ = sidecartest.Must(sessions.DeleteSession(t.Context(), &memsidecarv1.DeleteSessionRequest{Scope: scope}))(t)
	_ = sidecartest.Must(r.ForgetUser(t.Context(), &memsidecarv1.ForgetUserRequest{Scope: &memsidecarv1.Scope{UserId: "anna"}}))(t)
	for _, f := range sidecartest.Must(sqlite.Files{Checks: sqlstore.Checks()}.Check(t.Context(), sqlite.DatabasePath(dir), false))(t).Findings {
		if f.Problems > 0 {
			t.Errorf("after anna was forgotten: %s: %v", f.Check, f.Examples)
		}
	}
}

// TestUnreadableDialogueDoesNotBlockTheQueue: An unreadable dialogue fails visibly, and delays neither its user's other dialogues nor
// other users'.
func TestUnreadableDialogueDoesNotBlockTheQueue(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r := sidecartest.ServeIn(t, dir)
	var ids []string
	for _, text := range []string{
		"I am allergic to peanuts.", "I live in Lisbon and work as a nurse.", "I play the piano every Sunday with my brother.",
	} {
		ids = append(ids, r.Consider(t, sidecartest.Direct("anna"), sidecartest.Said(text)).GetId())
	}
	ben := r.Consider(t, sidecartest.Direct("ben"), sidecartest.Said("I am allergic to peanuts.")).GetId()
	r.Stop()
	// All are pending again, as after a kill, and not stored yet.
	sidecartest.ExecuteSQL(t, dir, `DELETE FROM embeddings`)
	sidecartest.ExecuteSQL(t, dir, `DELETE FROM memories`)
	sidecartest.ExecuteSQL(t, dir, `DELETE FROM applied_statements`)
	sidecartest.ExecuteSQL(t, dir, `UPDATE considerations SET state = 'pending', outcome = '{}', due_at = CASE WHEN seq IN
		(SELECT min(seq) FROM considerations GROUP BY user_id) THEN accepted_at END`)
	sidecartest.ExecuteSQL(t, dir, `UPDATE dialogues SET messages = '[{' WHERE row = (SELECT min(row) FROM dialogues)`)
	sidecartest.ExecuteSQL(t, dir, `UPDATE considerations SET checkpoint = 'no JSON' WHERE seq = (SELECT min(seq) + 1 FROM considerations)`)

	r = sidecartest.ServeIn(t, dir)
	state := func(user, id string) *memsidecarv1.Consideration {
		return sidecartest.Must(r.GetConsideration(t.Context(), &memsidecarv1.GetConsiderationRequest{Scope: sidecartest.Direct(user), ConsiderationId: id}))(
			t,
		).GetConsideration()
	}
	for user, considerations := range map[string][]string{"anna": ids, "ben": {ben}} {
		for i, id := range considerations {
			want := sidecartest.Remembered
			if user == "anna" && i == 0 {
				want = memsidecarv1.ConsiderationState_CONSIDERATION_STATE_FAILED
			}
			sidecartest.Eventually(t, "the queue goes on", func() bool { return state(user, id).GetState() == want })
		}
	}
	if c := state("anna", ids[0]); !strings.Contains(c.String(), "cannot be read") {
		t.Errorf("set aside is %s", c)
	}
	_ = sidecartest.Must(
		r.RetryConsideration(
			t.Context(),
			&memsidecarv1.RetryConsiderationRequest{Scope: sidecartest.Direct("anna"), ConsiderationId: ids[0]},
		),
	)(
		t,
	)
	sidecartest.Eventually(t, "it fails again", func() bool {
		return state("anna", ids[0]).GetState() == memsidecarv1.ConsiderationState_CONSIDERATION_STATE_FAILED
	})
}

// TestDamagedPageAffectsOneUser: One page with memories of one user is overwritten. Other users can still read and write.
func TestDamagedPageAffectsOneUser(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r := sidecartest.ServeIn(t, dir, sidecartest.HTTPListen)
	for _, user := range []string{"anna", "ben"} {
		for n := range 60 {
			_ = sidecartest.Must(r.CreateMemory(t.Context(), &memsidecarv1.CreateMemoryRequest{
				Scope: sidecartest.Direct(user), Memory: &memsidecarv1.Memory{
					Text: fmt.Sprintf("%s likes number %d %s", user, n, strings.Repeat(fmt.Sprintf("%s%d ", user, n), 60)),
				},
			}))(t)
		}
	}
	r.Stop()
	path := filepath.Join(dir, sidecartest.DatabaseFile)
	data := sidecartest.Must(os.ReadFile(path))(t)
	at := bytes.Index(data, []byte("anna likes number 30 ")) / 4096 * 4096
	copy(data[at:at+4096], bytes.Repeat([]byte{0xAA}, 4096))
	sidecartest.NoError(t, os.WriteFile(path, data, 0o600))

	r = sidecartest.ServeIn(t, dir, sidecartest.HTTPListen)
	if n := len(sidecartest.AllMemories(t.Context(), t, r, sidecartest.Direct("ben"))); n != 60 {
		t.Errorf("%d of ben's memories are listed", n)
	}
	resp := sidecartest.Must(
		r.Retrieve(t.Context(), &memsidecarv1.RetrieveRequest{Scope: sidecartest.Direct("anna"), Query: "number 3"}),
	)(
		t,
	)
	if len(resp.GetDegraded()) == 0 || !strings.Contains(resp.GetDegraded()[0].GetReason(), "memsidecar check") {
		t.Errorf("anna's Retrieve is answered %s", resp)
	}
	_, err := r.ListMemories(t.Context(), &memsidecarv1.ListMemoriesRequest{Scope: sidecartest.Direct("anna"), PageSize: 1000})
	sidecartest.WantCode(t, err, codes.DataLoss)
	if got := r.Texts(t, sidecartest.Direct("ben"), "number 3"); len(got) == 0 {
		t.Error("ben's are not retrieved")
	}
	if c := r.Consider(t, sidecartest.Direct("ben"), sidecartest.Said("I am allergic to peanuts.")); c.GetState() != sidecartest.Remembered {
		t.Errorf("writing of others: %s", c)
	}
	c := sidecartest.Component(sidecartest.Must(r.GetStatus(t.Context(), &memsidecarv1.GetStatusRequest{}))(t), "storage")
	if c.GetBreaker() != memsidecarv1.BreakerState_BREAKER_STATE_CLOSED || !strings.Contains(c.GetReason(), "memsidecar check") {
		t.Errorf("the status of storage is %s", c)
	}
}
