package decide_test

import (
	"log/slog"
	"testing"
	"time"

	"github.com/memsidecar/memsidecar/internal/decide"
	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/queue"
	"github.com/memsidecar/memsidecar/internal/session"
	"github.com/memsidecar/memsidecar/internal/sqlite"
	"github.com/memsidecar/memsidecar/internal/sqlstore"
	"github.com/memsidecar/memsidecar/internal/trace"
)

// recording is a Considerer whose workers do not run, with the sessions that it records dialogues in.
type recording struct {
	*decide.Considerer
	sessions *sqlstore.Sessions
	writer   *session.Writer
	enabled  bool
}

func newRecording(t *testing.T, record bool) *recording {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	storage, err := sqlite.Open(t.Context(), sqlite.Options{Dir: t.TempDir(), Log: log})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := storage.Close(); err != nil {
			t.Error(err)
		}
	})
	r := &recording{sessions: sqlstore.NewSessions(storage, sqlstore.NewQueue(storage)), enabled: true}
	settings := sqlstore.NewSettings(storage)
	traces := trace.NewRecorder(sqlstore.NewTraces(storage), trace.Options{Log: log})
	t.Cleanup(traces.Close)
	r.writer = session.NewWriter(session.WriterConfig{
		Store:    r.sessions,
		Settings: settings,
		Policies: func(string) session.Policy { return session.Policy{Enabled: r.enabled, MemorizeEvery: 10} },
	})
	r.Considerer = decide.NewConsiderer(decide.Deps{
		Queue:    sqlstore.NewQueue(storage),
		Sessions: r.sessions,
		Recorder: r.writer,
		Settings: settings,
		Traces:   traces,
	}, decide.Options{
		Record:     record,
		Visibility: memory.NewVisibility(memory.VisibilityChannel, nil),
		MaxPending: 100,
		Pool:       queue.Options{Workers: 1, Log: log},
	})
	return r
}

// said returns a request in which ann says one thing directly to the bot, without a speaker and a time.
func said(session, content string) decide.Request {
	d := memory.Dialogue{Scope: memory.Scope{
		Namespace: "n", UserID: "ann", SessionID: session, Channel: memory.Channel{Kind: memory.ChannelDirect, ID: "ann"},
	}}
	if content != "" {
		d.Messages = []memory.Message{{Role: memory.RoleUser, Content: content}}
	}
	return decide.Request{Dialogue: d}
}

// messages returns the messages of ann's session "talk"; none when there is no such session.
func (r *recording) messages(t *testing.T) []session.Message {
	t.Helper()
	viewer := session.ViewerOf(said("talk", "").Dialogue.Scope, memory.NewVisibility(memory.VisibilityChannel, nil))
	page, err := r.sessions.Messages(t.Context(), viewer, "talk", session.MessageQuery{Limit: 10})
	if err != nil && len(page.Messages) > 0 {
		t.Fatal(err)
	}
	return page.Messages
}

func TestConsiderRecordsTheDialogueInItsSession(t *testing.T) {
	for name, test := range map[string]struct {
		record, enabled bool
		want            int
	}{
		"as configured":         {true, true, 1},
		"not configured":        {false, true, 0},
		"sessions switched off": {true, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRecording(t, test.record)
			r.enabled = test.enabled
			start := time.Now().Add(-time.Microsecond)
			accepted, err := r.Consider(t.Context(), said("talk", "I like tea."))
			if err != nil || accepted.NotRecorded != nil || accepted.Consideration.State != memory.StatePending {
				t.Fatalf("%+v, %v", accepted, err)
			}
			got := r.messages(t)
			if len(got) != test.want {
				t.Fatalf("the session has %d messages, want %d", len(got), test.want)
			}
			for _, m := range got {
				if m.Speaker != "ann" || m.Time.Before(start) || m.ConsiderationID != accepted.Consideration.ID {
					t.Errorf("recorded %+v", m)
				}
			}
		})
	}
}

func TestConsiderKeepsADialogueThatItsSessionRefuses(t *testing.T) {
	r := newRecording(t, true)
	if _, err := r.Consider(t.Context(), said("talk", "I like tea.")); err != nil {
		t.Fatal(err)
	}
	elsewhere := said("talk", "I like coffee.")
	elsewhere.Dialogue.Scope.Channel = memory.Channel{}
	accepted, err := r.Consider(t.Context(), elsewhere)
	if err != nil || accepted.Consideration.State != memory.StatePending {
		t.Fatalf("%+v, %v", accepted, err)
	}
	if accepted.NotRecorded == nil || accepted.NotRecorded.Refusal != session.OtherChannel {
		t.Errorf("not recorded because of %v", accepted.NotRecorded)
	}
	if got := r.messages(t); len(got) != 1 {
		t.Errorf("the session has %d messages", len(got))
	}
}

func TestConsiderReturnsTheEarlierConsiderationForTheSameRequest(t *testing.T) {
	r := newRecording(t, true)
	first := said("talk", "I like tea.")
	first.RequestID = "once"
	accepted, err := r.Consider(t.Context(), first)
	if err != nil {
		t.Fatal(err)
	}
	again, err := r.Consider(t.Context(), first) // the same message, received at another time
	if err != nil || again.Consideration.ID != accepted.Consideration.ID {
		t.Errorf("%+v, %v", again, err)
	}
	first.Dialogue.Messages[0].Content = "I like coffee."
	if again, err = r.Consider(t.Context(), first); err == nil {
		t.Errorf("another dialogue with the same request id is accepted: %+v", again)
	}
	if got := r.messages(t); len(got) != 1 {
		t.Errorf("the session has %d messages", len(got))
	}
}

func TestConsiderWithoutMessagesConsidersTheCurrentSession(t *testing.T) {
	r := newRecording(t, false)
	nothing := said("", "")
	if _, err := r.Consider(t.Context(), nothing); err == nil {
		t.Error("a request without messages and without a session is accepted")
	}
	viewer := session.ViewerOf(nothing.Dialogue.Scope, memory.NewVisibility(memory.VisibilityChannel, nil))
	if _, _, err := r.sessions.Switch(t.Context(), viewer, "talk", time.Now()); err != nil {
		t.Fatal(err)
	}
	accepted, err := r.Consider(t.Context(), nothing)
	if err != nil || accepted.Consideration.State != memory.StateSkipped || accepted.Consideration.Scope.SessionID != "talk" {
		t.Errorf("an empty session: %+v, %v", accepted, err)
	}
	if _, err := r.writer.Append(t.Context(), session.AppendRequest{
		Scope:    said("talk", "").Dialogue.Scope,
		Audience: viewer.Audience,
		Messages: said("talk", "I like tea.").Dialogue.Messages,
	}); err != nil {
		t.Fatal(err)
	}
	if accepted, err = r.Consider(t.Context(), nothing); err != nil || accepted.Consideration.State != memory.StatePending {
		t.Errorf("a session with a message: %+v, %v", accepted, err)
	}
	r.enabled = false
	if accepted, err = r.Consider(t.Context(), nothing); err == nil {
		t.Errorf("with sessions switched off: %+v", accepted)
	}
}
