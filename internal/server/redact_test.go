package server_test

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/memsidecar/memsidecar/internal/provider/providertest"
	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"

	"github.com/memsidecar/memsidecar/internal/testkit/sidecartest"
)

// Secrets for the tests, concatenated so that scanners do not report them.
var (
	secretKey  = "sk-" + "proj-0123456789abcdefghijABCDEFGHIJ"
	secretCard = "4111 1111 1111 " + "1111"
	secretBank = "62220212345678" + "90128"
	secretWord = "Tr0ub4dor&3"
	secrets    = []string{secretKey, secretCard, secretBank, secretWord}
)

// confessions contain every secret, and a phone number that is to be remembered.
func confessions() []*memsidecarv1.Message {
	call := sidecartest.Said("My favourite drink is green tea, my password is " + secretWord + " and my phone number is 13812345678.")
	call.ToolCalls = []*memsidecarv1.ToolCall{
		{Name: "login", ArgumentsJson: `{"password":"` + strings.ReplaceAll(secretWord, "&", `\u0026`) + `"}`, Result: "key " + secretKey},
	}
	return []*memsidecarv1.Message{
		call, sidecartest.Answered("I shall not tell anybody that it is " + secretKey + "."),
		sidecartest.Said("Please remember that my API key is " + secretKey + "."), sidecartest.Answered("Noted."),
		sidecartest.Said("记住，我的银行卡号是" + secretBank + "，我喜欢喝绿茶。"), sidecartest.Answered("记住了。"),
		sidecartest.Said("Remember: I always pay with my card " + secretCard + ". I decided to move to Berlin in March."), sidecartest.Answered("Good."),
	}
}

// holding names the secrets that a text contains.
func holding(text string) (found []string) {
	for _, secret := range secrets {
		if strings.Contains(text, secret) {
			found = append(found, secret)
		}
	}
	return found
}

// derived returns all data derived from messages, from the API.
func derived(t *testing.T, r *sidecartest.Sidecar, scope *memsidecarv1.Scope) string {
	t.Helper()
	sessions, digests, traces := memsidecarv1.NewSessionServiceClient(
		r.Conn,
	), memsidecarv1.NewDigestServiceClient(
		r.Conn,
	), memsidecarv1.NewTraceServiceClient(
		r.Conn,
	)
	ctx := t.Context()
	retrieved := sidecartest.Must(r.Retrieve(ctx, &memsidecarv1.RetrieveRequest{Scope: scope, Query: "tea, card " + secretCard}))(t)
	retrieved.Messages = nil
	window := sidecartest.Must(sessions.GetContext(ctx, &memsidecarv1.GetContextRequest{Scope: scope, MaxMessages: proto.Int32(1)}))(t)
	if window.GetSummary().GetText() == "" {
		t.Error("there is no summary")
	}
	var b strings.Builder
	for _, m := range []proto.Message{
		retrieved, window,
		sidecartest.Must(digests.SummarizeDay(ctx, &memsidecarv1.SummarizeDayRequest{Scope: scope}))(t),
		sidecartest.Must(digests.GetNotebook(ctx, &memsidecarv1.GetNotebookRequest{Scope: scope}))(t),
		sidecartest.Must(sessions.GetTopics(ctx, &memsidecarv1.GetTopicsRequest{Scope: scope}))(t),
		sidecartest.Must(traces.ListTraces(ctx, &memsidecarv1.ListTracesRequest{Scope: scope}))(t),
		sidecartest.Must(r.ListMemories(ctx, &memsidecarv1.ListMemoriesRequest{Scope: scope}))(t),
		sidecartest.Must(r.ListConsiderations(ctx, &memsidecarv1.ListConsiderationsRequest{Scope: scope}))(t),
	} {
		b.WriteString(protojson.Format(m) + "\n")
	}
	return b.String()
}

// TestSecretsAreInNothingDerived: Memories, reasons, quotes, summaries, digests, the notebook, topics and traces hold no secrets. The
// consideration names their kinds. History keeps the original messages.
func TestSecretsAreInNothingDerived(t *testing.T) {
	t.Parallel()
	r := sidecartest.Serve(t)
	c := r.Consider(t, sidecartest.Direct("u"), confessions()...)
	if !strings.HasSuffix(c.GetReason(), "; redacted: 3 API keys, 2 card numbers and 2 passwords") {
		t.Errorf("the reason is %q", c.GetReason())
	}
	derived := derived(t, r, sidecartest.Direct("u"))
	if found := holding(derived); len(found) > 0 {
		t.Errorf("%q are in\n%s", found, derived)
	}
	for _, kept := range []string{"my API key is [redacted: API key]", "13812345678", "[已隐去：银行卡号]", "[redacted: card number]", "green tea"} {
		if !strings.Contains(derived, kept) && !strings.Contains(derived, strings.Replace(kept, "my", "The user's", 1)) {
			t.Errorf("%q is not in\n%s", kept, derived)
		}
	}
	if history := strings.Join(r.History(t, sidecartest.Direct("u")), "\n"); len(holding(history)) != len(secrets) {
		t.Errorf("the history is\n%s", history)
	}
}

// TestSecretsAreRememberedWithoutRedaction: A secret is then remembered like other text.
func TestSecretsAreRememberedWithoutRedaction(t *testing.T) {
	t.Parallel()
	for _, setting := range []string{"redact.enabled=false", "redact.kinds=token,card_number"} {
		r := sidecartest.Serve(t, setting)
		c := r.Consider(t, sidecartest.Direct("u"), sidecartest.Said("Please remember that my API key is "+secretKey+"."))
		if len(c.GetChanges()) != 1 || !strings.Contains(c.GetChanges()[0].GetText(), secretKey) || strings.Contains(c.GetReason(), "redacted") {
			t.Errorf("%s: %v", setting, c)
		}
	}
}

// TestSecretsAreNotOnDiskWithRedactedHistory: With history.redact no call writes a byte of them to disk.
func TestSecretsAreNotOnDiskWithRedactedHistory(t *testing.T) {
	t.Parallel()
	r := sidecartest.Serve(t, "history.redact=true")
	sessions := memsidecarv1.NewSessionServiceClient(r.Conn)
	c := r.Consider(t, sidecartest.Direct("u"), confessions()...)
	if !strings.HasSuffix(c.GetReason(), "; redacted: 3 API keys, 2 card numbers and 2 passwords") {
		t.Errorf("the reason is %q", c.GetReason())
	}
	r.AppendTo(t, sidecartest.Direct("v"), confessions()...)
	about := &memsidecarv1.Session{Title: "my password is " + secretWord, MetadataJson: `{"key":"` + secretKey + `"}`}
	stream := sidecartest.Must(sessions.ImportSession(t.Context()))(t)
	items := []*memsidecarv1.ImportSessionRequest{{Item: &memsidecarv1.ImportSessionRequest_Session{
		Session: &memsidecarv1.ImportedSession{Scope: sidecartest.Direct("w"), Session: about, Consider: true},
	}}}
	for _, m := range confessions() {
		items = append(items, &memsidecarv1.ImportSessionRequest{Item: &memsidecarv1.ImportSessionRequest_Message{Message: m}})
	}
	for _, item := range items {
		sidecartest.NoError(t, stream.Send(item))
	}
	imported := sidecartest.Must(stream.CloseAndRecv())(t)
	if got := imported.GetSession(); got.GetTitle() != "my password is [redacted: password]" || got.GetMetadataJson() != `{"key":"[redacted: API key]"}` {
		t.Errorf("imported %v", got)
	}
	scope := sidecartest.Direct("w")
	scope.SessionId = imported.GetSession().GetId()
	sidecartest.Must(sessions.UpdateSession(t.Context(), &memsidecarv1.UpdateSessionRequest{Scope: scope, Session: about}))(t)
	for _, user := range []string{"u", "v", "w"} {
		if history := strings.Join(r.History(t, sidecartest.Direct(user)), "\n"); len(holding(history)) > 0 ||
			!strings.Contains(history, "[redacted: API key]") {
			t.Errorf("the history is\n%s", history)
		}
	}
	derived(t, r, sidecartest.Direct("u"))
	r.Stop()
	err := filepath.WalkDir(r.Dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		for _, secret := range append([]string{strings.ReplaceAll(secretWord, "&", `\u0026`), strings.ToLower(secretWord)}, secrets...) {
			if bytes.Contains(data, []byte(secret)) {
				t.Errorf("%s holds %q", path, secret)
			}
		}
		return err
	})
	sidecartest.NoError(t, err)
}

// TestModelsReceiveNoSecrets: Dialogues, queries, messages for embedding and memories for comparison are redacted.
func TestModelsReceiveNoSecrets(t *testing.T) {
	t.Parallel()
	p := providertest.Start(t, 1000)
	r := sidecartest.Serve(t, sidecartest.UseProvider("openai", p)...)
	r.Create(t, sidecartest.Direct("u"), "The user's card is "+secretCard+" and the user likes tea")
	r.Consider(t, sidecartest.Direct("u"), sidecartest.Said("I sometimes drink tea, and pay with "+secretCard+"."), sidecartest.Answered("With "+secretKey+"?"))
	r.Consider(t, sidecartest.Direct("u"), confessions()...)
	derived(t, r, sidecartest.Direct("u"))
	sidecartest.Eventually(t, "the messages are embedded", func() bool { return len(p.Requests(providertest.Embedding)) > 3 })
	for _, part := range []providertest.Part{providertest.Decision, providertest.Summary, providertest.Embedding} {
		requests := p.Requests(part)
		if len(requests) == 0 {
			t.Errorf("%v was not asked", part)
		}
		for _, request := range requests {
			if found := holding(request.Body); len(found) > 0 {
				t.Errorf("%v was given %q", part, found)
			}
		}
	}
}
