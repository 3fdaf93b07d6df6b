package main

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
	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"
)

// flipped are values that a bit that flipped may leave in a row of anna's: the table and the statement that writes them. Each
// statement changes one row.
var flipped = []struct{ table, statement string }{
	{"memories", `UPDATE memories SET provenance = '{"quote":' WHERE text LIKE '%peanuts%' AND user_row = (SELECT id FROM users WHERE user_id = 'anna')`},
	{"memories", `UPDATE memories SET text = CAST(x'49206c697665ff' AS TEXT) WHERE text LIKE '%Lisbon%' AND user_row = (SELECT id FROM users WHERE user_id = 'anna')`},
	{"memories", `UPDATE memories SET created_at = 9000000000000000000 WHERE text LIKE '%piano%' AND user_row = (SELECT id FROM users WHERE user_id = 'anna')`},
	{"memories", `UPDATE memories SET importance = -1e300 WHERE text LIKE '%vegetarian%' AND user_row = (SELECT id FROM users WHERE user_id = 'anna')`},
	{"embeddings", `UPDATE embeddings SET vector = x'000080' WHERE memory_row = (SELECT row FROM memories WHERE text LIKE '%dentist%' AND user_row = (SELECT id FROM users WHERE user_id = 'anna'))`},
	{"session_messages", `UPDATE session_messages SET message = replace(message, '"content"', '"content') WHERE message LIKE '%boats%'`},
	{"session_messages", `UPDATE session_messages SET message = CAST(x'7bff7d' AS TEXT) WHERE message LIKE '%harbours%'`},
	{"traces", `UPDATE traces SET record = substr(record, 2) WHERE row = (SELECT min(row) FROM traces)`},
	{"considerations", `UPDATE considerations SET outcome = '[' WHERE seq = (SELECT min(seq) FROM considerations)`},
	{"result_items", `UPDATE result_items SET title = CAST(x'ff' AS TEXT) WHERE row = (SELECT min(row) + 1 FROM result_items)`},
	{"dialogues", `UPDATE dialogues SET messages = '[{"role"' WHERE row = (SELECT max(row) FROM dialogues WHERE user_id = 'anna')`},
}

// TestUnreadableRows: rows that cannot be decoded are skipped where there are others, answered DATA_LOSS where they are asked for, named
// in the log without their words, counted, and found by check. They can be deleted, and forgetting the user goes on.
func TestUnreadableRows(t *testing.T) {
	dir := t.TempDir()
	r := serveIn(t, dir, observed)
	for _, text := range []string{
		"I am allergic to peanuts.", "I live in Lisbon.", "I play the piano.", "I am a vegetarian.", "My dentist is Dr. Weber.", "I have a dog named Rex.",
	} {
		if c := r.consider(t, direct("anna"), said(text)); c.GetState() != remembered {
			t.Fatalf("%q is %s", text, c)
		}
	}
	_ = r.consider(t, direct("ben"), said("I am allergic to peanuts."))
	scope := direct("anna")
	scope.SessionId = "s1"
	sessions := memsidecarv1.NewSessionServiceClient(r.conn)
	_ = must(sessions.AppendMessages(t.Context(), &memsidecarv1.AppendMessagesRequest{Scope: scope, Messages: []*memsidecarv1.Message{
		said("We talked about boats."), said("And about harbours."), said("And about lighthouses."),
	}}))(t)
	_ = r.retrieve(t, direct("anna"), "peanuts")
	_ = r.putItems(t, &memsidecarv1.PutItemsRequest{Scope: direct("anna"), Items: listing(3)})
	ids := map[string]string{}
	for _, m := range allMemories(t.Context(), t, r, direct("anna")) {
		for _, word := range []string{"peanuts", "Lisbon", "piano", "vegetarian", "Weber"} {
			if strings.Contains(m.GetText(), word) {
				ids[word] = m.GetId()
			}
		}
	}
	r.stop()
	for _, b := range flipped {
		execute(t, dir, b.statement)
	}

	report := must(sqlite.Files{}.Check(t.Context(), sqlite.DatabasePath(dir), false))(t)
	var found []string
	for _, f := range report.Findings {
		found = append(found, f.Examples...)
	}
	all := strings.Join(found, "\n")
	for _, words := range []string{"peanuts", "Lisbon", "boats"} {
		if strings.Contains(all, words) {
			t.Errorf("check says what was said:\n%s", all)
		}
	}
	for _, kind := range []string{"memory mem_", "vector of memory mem_", "message 8 ", "message 9 ", "trace trc_", "item 2 ", "consideration 1 ", "dialogue con_"} {
		if !strings.Contains(all, kind) {
			t.Errorf("check finds no %s:\n%s", kind, all)
		}
	}
	for word, id := range ids {
		if !strings.Contains(all, id) {
			t.Errorf("check does not name %s (%s):\n%s", id, word, all)
		}
	}

	r = serveIn(t, dir, observed)
	sessions = memsidecarv1.NewSessionServiceClient(r.conn)
	var texts []string
	for _, m := range allMemories(t.Context(), t, r, direct("anna")) {
		texts = append(texts, m.GetText())
	}
	slices.Sort(texts)
	if len(texts) != 2 || !strings.Contains(texts[0], "dog") || !strings.Contains(texts[1], "dentist") {
		t.Errorf("listed %q", texts)
	}
	for query, want := range map[string]string{"dog Rex": "dog", "who is my dentist": "dentist"} {
		if got := r.retrieve(t, direct("anna"), query); !slices.ContainsFunc(got, func(s string) bool { return strings.Contains(s, want) }) {
			t.Errorf("%q retrieves %q", query, got)
		}
	}
	if got := r.retrieve(t, direct("ben"), "peanuts"); len(got) != 1 {
		t.Errorf("ben's are %q", got)
	}
	_, err := r.GetMemory(t.Context(), &memsidecarv1.GetMemoryRequest{Scope: direct("anna"), MemoryId: ids["Lisbon"]})
	wantCode(t, err, codes.DataLoss)
	if !strings.Contains(fmt.Sprint(err), "memsidecar check") {
		t.Errorf("it does not say what to do: %v", err)
	}
	_, err = r.GetMemory(t.Context(), &memsidecarv1.GetMemoryRequest{Scope: group("anna", "elsewhere"), MemoryId: ids["Lisbon"]})
	wantCode(t, err, codes.NotFound) // who may not see it learns nothing of it

	messages := must(sessions.ListMessages(t.Context(), &memsidecarv1.ListMessagesRequest{Scope: scope}))(t).GetMessages()
	if len(messages) != 1 || !strings.Contains(fmt.Sprint(messages), "lighthouses") {
		t.Errorf("the messages are %s", messages)
	}
	if window := must(sessions.GetContext(t.Context(), &memsidecarv1.GetContextRequest{Scope: scope}))(t); len(window.GetMessages()) != 1 {
		t.Errorf("the window is %s", window)
	}
	hits := must(r.Retrieve(t.Context(), &memsidecarv1.RetrieveRequest{
		Scope: direct("anna"), Query: "lighthouses", Sources: []memsidecarv1.RetrieveSource{memsidecarv1.RetrieveSource_RETRIEVE_SOURCE_MESSAGES},
	}))(t)
	if len(hits.GetMessages()) != 1 || len(hits.GetDegraded()) > 0 {
		t.Errorf("searching messages: %s", hits)
	}
	list := must(r.lists().GetNumberedList(t.Context(), &memsidecarv1.GetNumberedListRequest{Scope: direct("anna")}))(t).GetNumberedList().GetItems()
	if len(list) != 3 || list[2].GetNumber() != 3 || !strings.Contains(list[1].GetItem().GetTitle(), "cannot be read") {
		t.Errorf("the numbered list is %s", list) // the others keep their numbers
	}
	_ = must(sessions.GetTopics(t.Context(), &memsidecarv1.GetTopicsRequest{Scope: direct("anna")}))(t)
	considerations := must(r.ListConsiderations(t.Context(), &memsidecarv1.ListConsiderationsRequest{Scope: direct("anna")}))(t)
	if len(considerations.GetConsiderations()) < 6 {
		t.Errorf("the considerations are %s", considerations)
	}
	_ = must(memsidecarv1.NewTraceServiceClient(r.conn).ListTraces(t.Context(), &memsidecarv1.ListTracesRequest{Scope: direct("anna")}))(t)
	export := must(r.ExportUser(t.Context(), &memsidecarv1.ExportUserRequest{Scope: &memsidecarv1.Scope{UserId: "anna"}}))(t)
	for {
		if _, err := export.Recv(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("exporting: %v", err)
		}
	}

	log := r.log.String()
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
	if _, values := r.scrape(t); values[`unreadable_rows_total{table="memories"}`] != "4" {
		t.Errorf("counted are %q", values[`unreadable_rows_total{table="memories"}`])
	}

	_ = must(r.DeleteMemory(t.Context(), &memsidecarv1.DeleteMemoryRequest{Scope: direct("anna"), MemoryId: ids["Lisbon"]}))(t)
	if c := r.consider(t, direct("anna"), said("I am allergic to peanuts.")); c.GetState() != remembered {
		t.Errorf("what cannot be read is said again: %s", c)
	}
	_ = must(sessions.DeleteSession(t.Context(), &memsidecarv1.DeleteSessionRequest{Scope: scope}))(t)
	_ = must(r.ForgetUser(t.Context(), &memsidecarv1.ForgetUserRequest{Scope: &memsidecarv1.Scope{UserId: "anna"}}))(t)
	for _, f := range must(sqlite.Files{}.Check(t.Context(), sqlite.DatabasePath(dir), false))(t).Findings {
		if f.Problems > 0 {
			t.Errorf("after anna was forgotten: %s: %v", f.Check, f.Examples)
		}
	}
}

// TestPoisonedQueue: a dialogue that cannot be read fails, visibly, and holds up neither its user's other dialogues nor anybody else's.
func TestPoisonedQueue(t *testing.T) {
	dir := t.TempDir()
	r := serveIn(t, dir)
	var ids []string
	for _, text := range []string{"I am allergic to peanuts.", "I live in Lisbon.", "I play the piano."} {
		ids = append(ids, r.consider(t, direct("anna"), said(text)).GetId())
	}
	ben := r.consider(t, direct("ben"), said("I am allergic to peanuts.")).GetId()
	r.stop()
	// All wait again, as after a kill, and nothing of them is stored yet.
	execute(t, dir, `DELETE FROM embeddings`)
	execute(t, dir, `DELETE FROM memories`)
	execute(t, dir, `DELETE FROM applied_statements`)
	execute(t, dir, `UPDATE considerations SET state = 'pending', outcome = '{}', due_at = CASE WHEN seq IN
		(SELECT min(seq) FROM considerations GROUP BY user_id) THEN accepted_at END`)
	execute(t, dir, `UPDATE dialogues SET messages = '[{' WHERE row = (SELECT min(row) FROM dialogues)`)
	execute(t, dir, `UPDATE considerations SET checkpoint = 'no JSON' WHERE seq = (SELECT min(seq) + 1 FROM considerations)`)

	r = serveIn(t, dir)
	state := func(user, id string) *memsidecarv1.Consideration {
		return must(r.GetConsideration(t.Context(), &memsidecarv1.GetConsiderationRequest{Scope: direct(user), ConsiderationId: id}))(t).GetConsideration()
	}
	for user, considerations := range map[string][]string{"anna": ids, "ben": {ben}} {
		for i, id := range considerations {
			want := remembered
			if user == "anna" && i == 0 {
				want = memsidecarv1.ConsiderationState_CONSIDERATION_STATE_FAILED
			}
			eventually(t, "the queue goes on", func() bool { return state(user, id).GetState() == want })
		}
	}
	if c := state("anna", ids[0]); !strings.Contains(c.String(), "cannot be read") {
		t.Errorf("set aside is %s", c)
	}
	_ = must(r.RetryConsideration(t.Context(), &memsidecarv1.RetryConsiderationRequest{Scope: direct("anna"), ConsiderationId: ids[0]}))(t)
	eventually(t, "it fails again", func() bool {
		return state("anna", ids[0]).GetState() == memsidecarv1.ConsiderationState_CONSIDERATION_STATE_FAILED
	})
}

// TestBrokenPage: a page of one user's memories is overwritten. The others read and write as before.
func TestBrokenPage(t *testing.T) {
	dir := t.TempDir()
	r := serveIn(t, dir, observed)
	for _, user := range []string{"anna", "ben"} {
		for n := range 60 {
			_ = must(r.CreateMemory(t.Context(), &memsidecarv1.CreateMemoryRequest{
				Scope: direct(user), Memory: &memsidecarv1.Memory{
					Text: fmt.Sprintf("%s likes number %d %s", user, n, strings.Repeat(fmt.Sprintf("%s%d ", user, n), 60)),
				},
			}))(t)
		}
	}
	r.stop()
	path := filepath.Join(dir, databaseFile)
	data := must(os.ReadFile(path))(t)
	at := bytes.Index(data, []byte("anna likes number 30 ")) / 4096 * 4096
	copy(data[at:at+4096], bytes.Repeat([]byte{0xAA}, 4096))
	mustDo(t, os.WriteFile(path, data, 0o600))

	r = serveIn(t, dir, observed)
	if n := len(allMemories(t.Context(), t, r, direct("ben"))); n != 60 {
		t.Errorf("%d of ben's memories are listed", n)
	}
	resp := must(r.Retrieve(t.Context(), &memsidecarv1.RetrieveRequest{Scope: direct("anna"), Query: "number 3"}))(t)
	if len(resp.GetDegraded()) == 0 || !strings.Contains(resp.GetDegraded()[0].GetReason(), "memsidecar check") {
		t.Errorf("anna's Retrieve is answered %s", resp)
	}
	_, err := r.ListMemories(t.Context(), &memsidecarv1.ListMemoriesRequest{Scope: direct("anna"), PageSize: 1000})
	wantCode(t, err, codes.DataLoss)
	if got := r.retrieve(t, direct("ben"), "number 3"); len(got) == 0 {
		t.Error("ben's are not retrieved")
	}
	if c := r.consider(t, direct("ben"), said("I am allergic to peanuts.")); c.GetState() != remembered {
		t.Errorf("writing of others: %s", c)
	}
	c := component(must(r.GetStatus(t.Context(), &memsidecarv1.GetStatusRequest{}))(t), "storage")
	if c.GetBreaker() != memsidecarv1.BreakerState_BREAKER_STATE_CLOSED || !strings.Contains(c.GetReason(), "memsidecar check") {
		t.Errorf("the status of storage is %s", c)
	}
}
