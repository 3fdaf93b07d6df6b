package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf16"

	"google.golang.org/protobuf/proto"

	"github.com/memsidecar/memsidecar/internal/sqlite"
	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"
)

// marks is a text that occurs nowhere else, in two scripts.
const marks = "Zyxwvutsrq魑魅魍魉"

// forms are how the marks may be on the disk: as they were written, folded as the keyword index has them, in its pairs of
// characters, in two bytes a character, as JSON may escape them, and as names of files.
func forms() []string {
	list := []string{"Zyxwvutsrq", "zyxwvutsrq", "ZYXWVUTSRQ", "xwvutsr", "魑魅", "魅魍", "魍魉", `\u9b51\u9b45`, "%5ayxwvutsrq", "%e9%ad%91"}
	for _, text := range []string{"Zyxwvutsrq", "魑魅"} {
		var little, big []byte
		for _, unit := range utf16.Encode([]rune(text)) {
			little, big = append(little, byte(unit), byte(unit>>8)), append(big, byte(unit>>8), byte(unit))
		}
		list = append(list, string(little), string(big))
	}
	return list
}

// wantNoMarks looks for the marks in every file of the folder and in the log.
func (r *running) wantNoMarks(t *testing.T, when string) {
	t.Helper()
	for _, form := range forms() {
		if files := holdsBytes(t, r.dir, form); len(files) > 0 {
			t.Errorf("%s %q is in %q", when, form, files)
			for _, file := range files {
				if file == "memsidecar.db" {
					where(t, r.dir, form)
				}
			}
		}
	}
	if log := r.log.String(); strings.Contains(log, "Zyxwvutsrq") || strings.Contains(log, "魑魅") {
		t.Errorf("%s the log has %s", when, log)
	}
}

// where names the tables that hold a text, so that somebody who breaks this test learns what to look at.
func where(t *testing.T, dir, text string) {
	t.Helper()
	for _, line := range tablesWith(t, dir, text) {
		t.Log(line)
	}
}

// everywhere writes the marks with every call that stores something.
func (r *running) everywhere(t *testing.T, user string) {
	t.Helper()
	place := &memsidecarv1.Scope{
		UserId: user, AgentId: "agent-" + marks, ChannelKind: memsidecarv1.ChannelKind_CHANNEL_KIND_DIRECT, ChannelId: "chat-" + marks,
		SessionId: "session-" + marks,
	}
	full := func(id string, m *memsidecarv1.Message) *memsidecarv1.Message {
		m.Id, m.MetadataJson = id+"-"+marks, `{"`+marks+`": "`+marks+`"}`
		return m
	}
	tool := answered("Let me look, " + marks)
	tool.ToolCalls = []*memsidecarv1.ToolCall{{Id: marks, Name: "look-" + marks, ArgumentsJson: `{"q": "` + marks + `"}`, Result: marks + " found", Status: "ok-" + marks}}
	must(r.ConsiderMemorizing(t.Context(), &memsidecarv1.ConsiderMemorizingRequest{
		Scope: place, RequestId: "request-" + marks, TurnId: "turn-" + marks,
		Messages: []*memsidecarv1.Message{full("a", said("My name is "+marks+".")), full("b", tool), full("c", said("I like "+marks+" tea."))},
	}))(t)
	r.consider(t, place, said("I don't like "+marks+" tea any more."), answered("Fine, "+marks))
	r.consider(t, direct(user), said("ok "+marks))
	r.consider(t, direct(user), said("我叫"+marks+"。"), answered("你好，"+marks))
	r.consider(t, group(user, "g"), by(user, "I am allergic to "+marks+"."), by("bob", "My name is Bob."), answered("I see, "+marks))
	r.consider(t, within(group("bob", "g"), "open"), by("bob", "I am allergic to peanuts."), by(user, "I live in "+marks+"."), answered("Both."))
	r.appendTo(t, place, full("d", said("And "+marks+" again")), full("e", answered("Yes, "+marks)))
	r.appendTo(t, within(group("bob", "g"), "open"), by(user, "Still "+marks), by("bob", "I see."))
	asked := within(group(user, "g"), "open")
	asked.AgentId = "agent-" + marks // whom nobody else has spoken to
	r.appendTo(t, asked, said("Only to you, "+marks), answered("Yes, "+marks))
	var long []*memsidecarv1.Message
	for i := range 300 { // enough for the keyword index, and for pages to be split
		long = append(long, said(fmt.Sprintf("%s %d %x", marks, i, i*7919)), answered(fmt.Sprintf("%d %s", i*31, marks)))
	}
	r.appendTo(t, within(direct(user), "long"), long...)
	must(r.sessions().UpdateSession(t.Context(), &memsidecarv1.UpdateSessionRequest{
		Scope: place, Session: &memsidecarv1.Session{Title: "title " + marks, MetadataJson: `{"a": "` + marks + `"}`}, UpdateMask: mask("title", "metadata_json"),
	}))(t)
	must(r.sessions().SwitchSession(t.Context(), &memsidecarv1.SwitchSessionRequest{Scope: within(direct(user), "other-"+marks)}))(t)
	m := must(r.CreateMemory(t.Context(), &memsidecarv1.CreateMemoryRequest{
		Scope: place, Memory: &memsidecarv1.Memory{Text: marks + " collects stamps"}, RequestId: "create-" + marks,
	}))(t).GetMemory()
	must(r.UpdateMemory(t.Context(), &memsidecarv1.UpdateMemoryRequest{
		Scope: place, Memory: &memsidecarv1.Memory{Id: m.GetId(), Text: marks + " collects coins"}, UpdateMask: mask("text"),
	}))(t)
	must(r.load(t, direct(user), &memsidecarv1.Memory{Id: "imported-" + marks, Text: marks + " was imported", QuarantineReason: "why " + marks}))(t)
	must(r.UpdateUserSettings(t.Context(), &memsidecarv1.UpdateUserSettingsRequest{Scope: place, Settings: &memsidecarv1.UserSettings{Language: "en"}}))(t)
	for _, kind := range []memsidecarv1.RegistryKind{memsidecarv1.RegistryKind_REGISTRY_KIND_USER, ofChannel} {
		r.putItems(t, &memsidecarv1.PutItemsRequest{
			Scope: place, RegistryKind: kind, List: "list-" + marks, Mode: manual, Items: []*memsidecarv1.RegistryItem{film("key-"+marks, "title "+marks)},
		})
	}
	r.putItems(t, &memsidecarv1.PutItemsRequest{
		Scope: within(group(user, "g"), "open"), RegistryKind: memsidecarv1.RegistryKind_REGISTRY_KIND_USER, List: "list-" + marks, Mode: manual,
		Items: []*memsidecarv1.RegistryItem{film("key-"+marks, "title "+marks)},
	})
	must(r.Retrieve(t.Context(), &memsidecarv1.RetrieveRequest{
		Scope: place, Query: "who is " + marks, TurnId: "turn-" + marks,
		Sources: []memsidecarv1.RetrieveSource{memsidecarv1.RetrieveSource_RETRIEVE_SOURCE_MEMORIES, memsidecarv1.RetrieveSource_RETRIEVE_SOURCE_MESSAGES},
	}))(t)
	must(r.sessions().GetContext(t.Context(), &memsidecarv1.GetContextRequest{Scope: place}))(t)
	r.summarize(t, direct(user), "")
	must(r.sessions().GetTopics(t.Context(), &memsidecarv1.GetTopicsRequest{Scope: place}))(t)
}

// TestNothingLeft: of a user of whom everything was stored, under ids that are texts of the user, in groups as well, with
// considerations that failed and wait, no byte is left in any file.
func TestNothingLeft(t *testing.T) {
	dir := t.TempDir()
	user := "alice-" + marks
	seedConsideration(t, dir, direct(user), "failed "+marks, failed)
	r := serveIn(t, dir, "digest.export_dir="+filepath.Join(dir, "digests"))
	r.everywhere(t, user)
	r.consider(t, group("bob", "g"), by("bob", "I like "+"chess."), by(user, marks+" is what I like."), answered("Chess it is."))
	bob := r.export(t, direct("bob"))
	eventually(t, "messages are in the keyword index", func() bool { return len(holdsBytes(t, dir, "zyxwvutsrq")) > 0 })
	r.stop()
	// What a model would have said about bob's words, quoting what it had read beside them.
	withStorage(t, dir, func(storage *sqlite.Storage) {
		for _, statement := range []string{
			`UPDATE memories SET provenance = json_set(provenance, '$.reason', 'alice said ` + marks + `') WHERE text LIKE '%chess%' OR text LIKE '%peanuts%'`,
			`UPDATE considerations SET outcome = json_set(outcome, '$.reason', 'alice said ` + marks + `', '$.error', '` + marks + `'), checkpoint = '{"reason": "` + marks + `"}' WHERE user_id = 'bob'`,
			`UPDATE traces SET record = json_set(record, '$.consider.reason', '` + marks + `', '$.error', '` + marks + `') WHERE user_id = 'bob' AND kind = 'consider'`,
			`UPDATE digest_findings SET finding = json_set(finding, '$.reason', '` + marks + `') WHERE finding LIKE '%chess%' OR finding LIKE '%peanuts%'`,
		} {
			if err := storage.Write(t.Context(), func(tx *sqlite.Tx) error {
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
	r = serveIn(t, dir, "digest.export_dir="+filepath.Join(dir, "digests"))
	for _, form := range []string{"Zyxwvutsrq", "zyxwvutsrq", "魑魅", "魅魍"} {
		if len(holdsBytes(t, dir, form)) == 0 {
			t.Errorf("%q is stored nowhere: not finding it would show nothing", form)
		}
	}
	receipt := must(r.ForgetUser(t.Context(), &memsidecarv1.ForgetUserRequest{Scope: anywhere(user)}))(t)
	if !receipt.GetPurgedFromDisk() || receipt.GetFileCount() == 0 || receipt.GetDigestFindingCount() == 0 || receipt.GetRegistryItemCount() != 3 || receipt.GetMessageCount() < 3 {
		t.Errorf("the receipt is %v", receipt)
	}
	r.wantNoMarks(t, "after forgetting")
	if again := must(r.ForgetUser(t.Context(), &memsidecarv1.ForgetUserRequest{Scope: anywhere(user)}))(t); !proto.Equal(again, &memsidecarv1.ForgetUserResponse{PurgedFromDisk: true}) {
		t.Errorf("there was more to forget: %v", again)
	}
	after := r.export(t, direct("bob"))
	if len(after.memories) != len(bob.memories) || len(after.considerations) != len(bob.considerations) || !after.holds("peanuts") || !after.holds("Chess it is.") {
		t.Errorf("bob had %s and now has %s", bob.records, after.records)
	}
	r.stop()
	r.wantNoMarks(t, "after stopping")
	r = serveIn(t, dir)
	r.wantNoMarks(t, "after the next start")
}
