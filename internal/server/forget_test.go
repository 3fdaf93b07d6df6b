package server_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/memsidecar/memsidecar/internal/sqlite"
	"github.com/memsidecar/memsidecar/internal/sqlstore/sqldb"
	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"

	"github.com/memsidecar/memsidecar/internal/testkit/sidecartest"
)

// wantNoMarks checks that no file of the folder, and no log line, contains the marks.
func wantNoMarks(t *testing.T, r *sidecartest.Sidecar, when string) {
	t.Helper()
	for _, form := range sidecartest.Forms() {
		if files := sidecartest.FilesWith(t, r.Dir, form); len(files) > 0 {
			t.Errorf("%s %q is in %q", when, form, files)
			for _, file := range files {
				if file == "memsidecar.db" {
					where(t, r.Dir, form)
				}
			}
		}
	}
	if log := r.Log.String(); strings.Contains(log, "Zyxwvutsrq") || strings.Contains(log, "魑魅") {
		t.Errorf("%s the log has %s", when, log)
	}
}

// where names the tables that contain a text, to help find the cause of a failure.
func where(t *testing.T, dir, text string) {
	t.Helper()
	for _, line := range sidecartest.TablesWith(t, dir, text) {
		t.Log(line)
	}
}

// everywhere writes the marks with every call that stores something.
func everywhere(t *testing.T, r *sidecartest.Sidecar, user string) {
	t.Helper()
	place := &memsidecarv1.Scope{
		UserId: user, AgentId: "agent-" + sidecartest.Marks, ChannelKind: memsidecarv1.ChannelKind_CHANNEL_KIND_DIRECT, ChannelId: "chat-" + sidecartest.Marks,
		SessionId: "session-" + sidecartest.Marks,
	}
	full := func(id string, m *memsidecarv1.Message) *memsidecarv1.Message {
		m.Id, m.MetadataJson = id+"-"+sidecartest.Marks, `{"`+sidecartest.Marks+`": "`+sidecartest.Marks+`"}`
		return m
	}
	tool := sidecartest.Answered("Let me look, " + sidecartest.Marks)
	tool.ToolCalls = []*memsidecarv1.ToolCall{
		{
			Id:            sidecartest.Marks,
			Name:          "look-" + sidecartest.Marks,
			ArgumentsJson: `{"q": "` + sidecartest.Marks + `"}`,
			Result:        sidecartest.Marks + " found",
			Status:        "ok-" + sidecartest.Marks,
		},
	}
	sidecartest.Must(r.ConsiderMemorizing(t.Context(), &memsidecarv1.ConsiderMemorizingRequest{
		Scope: place, RequestId: "request-" + sidecartest.Marks, TurnId: "turn-" + sidecartest.Marks,
		Messages: []*memsidecarv1.Message{
			full("a", sidecartest.Said("My name is "+sidecartest.Marks+".")),
			full("b", tool),
			full("c", sidecartest.Said("I like "+sidecartest.Marks+" tea.")),
		},
	}))(t)
	r.Consider(
		t,
		place,
		sidecartest.Said("I don't like "+sidecartest.Marks+" tea any more."),
		sidecartest.Answered("Fine, "+sidecartest.Marks),
	)
	r.Consider(t, sidecartest.Direct(user), sidecartest.Said("ok "+sidecartest.Marks))
	r.Consider(t, sidecartest.Direct(user), sidecartest.Said("我叫"+sidecartest.Marks+"。"), sidecartest.Answered("你好，"+sidecartest.Marks))
	r.Consider(
		t,
		sidecartest.Group(user, "g"),
		by(user, "I am allergic to "+sidecartest.Marks+"."),
		by("bob", "My name is Bob."),
		sidecartest.Answered("I see, "+sidecartest.Marks),
	)
	r.Consider(
		t,
		sidecartest.InSession(sidecartest.Group("bob", "g"), "open"),
		by("bob", "I am allergic to peanuts."),
		by(user, "I live in "+sidecartest.Marks+"."),
		sidecartest.Answered("Both."),
	)
	r.AppendTo(
		t,
		place,
		full("d", sidecartest.Said("And "+sidecartest.Marks+" again")),
		full("e", sidecartest.Answered("Yes, "+sidecartest.Marks)),
	)
	r.AppendTo(t, sidecartest.InSession(sidecartest.Group("bob", "g"), "open"), by(user, "Still "+sidecartest.Marks), by("bob", "I see."))
	asked := sidecartest.InSession(sidecartest.Group(user, "g"), "open")
	asked.AgentId = "agent-" + sidecartest.Marks // an agent of nobody else
	r.AppendTo(t, asked, sidecartest.Said("Only to you, "+sidecartest.Marks), sidecartest.Answered("Yes, "+sidecartest.Marks))
	var long []*memsidecarv1.Message
	for i := range 300 { // enough for the keyword index, and for split pages
		long = append(
			long,
			sidecartest.Said(fmt.Sprintf("%s %d %x", sidecartest.Marks, i, i*7919)),
			sidecartest.Answered(fmt.Sprintf("%d %s", i*31, sidecartest.Marks)),
		)
	}
	r.AppendTo(t, sidecartest.InSession(sidecartest.Direct(user), "long"), long...)
	sidecartest.Must(r.Sessions().UpdateSession(t.Context(), &memsidecarv1.UpdateSessionRequest{
		Scope: place, Session: &memsidecarv1.Session{
			Title:        "title " + sidecartest.Marks,
			MetadataJson: `{"a": "` + sidecartest.Marks + `"}`,
		}, UpdateMask: sidecartest.Mask("title", "metadata_json"),
	}))(t)
	sidecartest.Must(
		r.Sessions().
			SwitchSession(t.Context(), &memsidecarv1.SwitchSessionRequest{Scope: sidecartest.InSession(sidecartest.Direct(user), "other-"+sidecartest.Marks)}),
	)(
		t,
	)
	m := sidecartest.Must(r.CreateMemory(t.Context(), &memsidecarv1.CreateMemoryRequest{
		Scope: place, Memory: &memsidecarv1.Memory{Text: sidecartest.Marks + " collects stamps"}, RequestId: "create-" + sidecartest.Marks,
	}))(t).GetMemory()
	sidecartest.Must(r.UpdateMemory(t.Context(), &memsidecarv1.UpdateMemoryRequest{
		Scope: place, Memory: &memsidecarv1.Memory{Id: m.GetId(), Text: sidecartest.Marks + " collects coins"}, UpdateMask: sidecartest.Mask("text"),
	}))(t)
	sidecartest.Must(
		r.Import(
			t,
			sidecartest.Direct(user),
			&memsidecarv1.Memory{
				Id:               "imported-" + sidecartest.Marks,
				Text:             sidecartest.Marks + " was imported",
				QuarantineReason: "why " + sidecartest.Marks,
			},
		),
	)(
		t,
	)
	sidecartest.Must(
		r.UpdateUserSettings(
			t.Context(),
			&memsidecarv1.UpdateUserSettingsRequest{Scope: place, Settings: &memsidecarv1.UserSettings{Language: "en"}},
		),
	)(
		t,
	)
	for _, kind := range []memsidecarv1.RegistryKind{memsidecarv1.RegistryKind_REGISTRY_KIND_USER, ofChannel} {
		putItems(t, r, &memsidecarv1.PutItemsRequest{
			Scope: place, RegistryKind: kind, List: "list-" + sidecartest.Marks, Mode: manual,
			Items: []*memsidecarv1.RegistryItem{film("key-"+sidecartest.Marks, "title "+sidecartest.Marks)},
		})
	}
	putItems(t, r, &memsidecarv1.PutItemsRequest{
		Scope: sidecartest.InSession(
			sidecartest.Group(user, "g"),
			"open",
		), RegistryKind: memsidecarv1.RegistryKind_REGISTRY_KIND_USER, List: "list-" + sidecartest.Marks, Mode: manual,
		Items: []*memsidecarv1.RegistryItem{film("key-"+sidecartest.Marks, "title "+sidecartest.Marks)},
	})
	sidecartest.Must(r.Retrieve(t.Context(), &memsidecarv1.RetrieveRequest{
		Scope: place, Query: "who is " + sidecartest.Marks, TurnId: "turn-" + sidecartest.Marks,
		Sources: []memsidecarv1.RetrieveSource{
			memsidecarv1.RetrieveSource_RETRIEVE_SOURCE_MEMORIES,
			memsidecarv1.RetrieveSource_RETRIEVE_SOURCE_MESSAGES,
		},
	}))(t)
	sidecartest.Must(r.Sessions().GetContext(t.Context(), &memsidecarv1.GetContextRequest{Scope: place}))(t)
	summarize(t, r, sidecartest.Direct(user), "")
	sidecartest.Must(r.Sessions().GetTopics(t.Context(), &memsidecarv1.GetTopicsRequest{Scope: place}))(t)
}

// TestForgottenUserIsNotOnDisk: A user has data of every kind, with ids that contain text, also in groups, and with failed and pending
// considerations. After ForgetUser no byte of it is in any file.
func TestForgottenUserIsNotOnDisk(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	user := "alice-" + sidecartest.Marks
	sidecartest.SeedConsideration(t, dir, sidecartest.Direct(user), "failed "+sidecartest.Marks, sidecartest.Failed)
	r := sidecartest.ServeIn(t, dir, "digest.export_dir="+filepath.Join(dir, "digests"))
	everywhere(t, r, user)
	r.Consider(
		t,
		sidecartest.Group("bob", "g"),
		by("bob", "I like "+"chess."),
		by(user, sidecartest.Marks+" is what I like."),
		sidecartest.Answered("Chess it is."),
	)
	bob := r.Export(t, sidecartest.Direct("bob"))
	sidecartest.Eventually(
		t,
		"messages are in the keyword index",
		func() bool { return len(sidecartest.FilesWith(t, dir, "zyxwvutsrq")) > 0 },
	)
	r.Stop()
	// A model's findings about bob that quote the user's messages.
	sidecartest.WithStorage(t, dir, func(storage *sqlite.Storage) {
		for _, statement := range []string{
			`UPDATE memories SET provenance = json_set(provenance, '$.reason', 'alice said ` + sidecartest.Marks + `')
				WHERE text LIKE '%chess%' OR text LIKE '%peanuts%'`,
			`UPDATE considerations SET outcome = json_set(outcome, '$.reason', 'alice said ` + sidecartest.Marks + `', '$.error', '` +
				sidecartest.Marks + `'), checkpoint = '{"reason": "` + sidecartest.Marks + `"}' WHERE user_id = 'bob'`,
			`UPDATE traces SET record = json_set(record, '$.consider.reason', '` + sidecartest.Marks + `', '$.error', '` + sidecartest.Marks + `')
				WHERE user_id = 'bob' AND kind = 'consider'`,
			`UPDATE digest_findings SET finding = json_set(finding, '$.reason', '` + sidecartest.Marks + `') WHERE finding LIKE '%chess%' OR finding LIKE '%peanuts%'`,
		} {
			if err := storage.Write(t.Context(), func(tx sqldb.Tx) error {
				n, err := tx.Affect(t.Context(), statement)
				if n == 0 {
					t.Errorf("nothing to change for %s", statement)
				}
				return err
			}); err != nil {
				t.Fatal(err)
			}
		}
	})
	r = sidecartest.ServeIn(t, dir, "digest.export_dir="+filepath.Join(dir, "digests"))
	for _, form := range []string{"Zyxwvutsrq", "zyxwvutsrq", "魑魅", "魅魍"} {
		if len(sidecartest.FilesWith(t, dir, form)) == 0 {
			t.Errorf("%q is stored nowhere: not finding it would show nothing", form)
		}
	}
	receipt := sidecartest.Must(r.ForgetUser(t.Context(), &memsidecarv1.ForgetUserRequest{Scope: sidecartest.WithoutChannel(user)}))(t)
	if !receipt.GetPurgedFromDisk() || receipt.GetFileCount() == 0 || receipt.GetDigestFindingCount() == 0 ||
		receipt.GetRegistryItemCount() != 3 ||
		receipt.GetMessageCount() < 3 {
		t.Errorf("the receipt is %v", receipt)
	}
	wantNoMarks(t, r, "after forgetting")
	if again := sidecartest.Must(r.ForgetUser(t.Context(), &memsidecarv1.ForgetUserRequest{Scope: sidecartest.WithoutChannel(user)}))(t); !proto.Equal(
		again,
		&memsidecarv1.ForgetUserResponse{PurgedFromDisk: true},
	) {
		t.Errorf("there was more to forget: %v", again)
	}
	after := r.Export(t, sidecartest.Direct("bob"))
	if len(after.Memories) != len(bob.Memories) || len(after.Considerations) != len(bob.Considerations) || !after.Holds("peanuts") ||
		!after.Holds("Chess it is.") {
		t.Errorf("bob had %s and now has %s", bob.Records, after.Records)
	}
	r.Stop()
	wantNoMarks(t, r, "after stopping")
	r = sidecartest.ServeIn(t, dir)
	wantNoMarks(t, r, "after the next start")
}
