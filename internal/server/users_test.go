package server_test

import (
	"strings"
	"testing"
	"time"

	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"

	"github.com/memsidecar/memsidecar/internal/testkit/sidecartest"
)

func TestUserSettings(t *testing.T) {
	t.Parallel()
	began := time.Now().Truncate(time.Microsecond) // as times are stored
	r := sidecartest.Serve(t)
	get := func() *memsidecarv1.UserSettings {
		t.Helper()
		return sidecartest.Must(r.GetUserSettings(t.Context(), &memsidecarv1.GetUserSettingsRequest{Scope: sidecartest.Direct("u")}))(
			t,
		).GetSettings()
	}
	update := func(s *memsidecarv1.UserSettings, paths ...string) *memsidecarv1.UserSettings {
		t.Helper()
		request := &memsidecarv1.UpdateUserSettingsRequest{
			Scope:    sidecartest.Group("u", "g"),
			Settings: s,
		} // settings do not depend on the channel
		if paths != nil {
			request.UpdateMask = sidecartest.Mask(paths...)
		}
		resp := sidecartest.Must(r.UpdateUserSettings(t.Context(), request))(t)
		wantSame(t, get(), resp.GetSettings())
		return resp.GetSettings()
	}
	wantSame(t, get(), &memsidecarv1.UserSettings{})
	s := update(&memsidecarv1.UserSettings{TimeZone: "Asia/Shanghai", Language: "zh_CN", Paused: true})
	wantSame(t, s, &memsidecarv1.UserSettings{TimeZone: "Asia/Shanghai", Language: "zh-CN", Paused: true, UpdateTime: s.GetUpdateTime()})
	if at := s.GetUpdateTime().AsTime(); at.Before(began) || at.After(time.Now()) {
		t.Errorf("updated at %s", s.GetUpdateTime().AsTime())
	}
	s = update(&memsidecarv1.UserSettings{Language: "en"}) // unset fields keep their values
	wantSame(t, s, &memsidecarv1.UserSettings{TimeZone: "Asia/Shanghai", Language: "en", Paused: true, UpdateTime: s.GetUpdateTime()})
	s = update(&memsidecarv1.UserSettings{TimeZone: "Mars/Olympus", Language: "not one"}, "paused") // other fields are not validated
	wantSame(t, s, &memsidecarv1.UserSettings{TimeZone: "Asia/Shanghai", Language: "en", UpdateTime: s.GetUpdateTime()})
	s = update(&memsidecarv1.UserSettings{}, "*")
	wantSame(t, s, &memsidecarv1.UserSettings{UpdateTime: s.GetUpdateTime()})
	for _, wrong := range []string{"Mars/Olympus", "Local", "../../etc/passwd", "UTC+8"} {
		_, err := r.UpdateUserSettings(
			t.Context(),
			&memsidecarv1.UpdateUserSettingsRequest{Scope: sidecartest.Direct("u"), Settings: &memsidecarv1.UserSettings{TimeZone: wrong}},
		)
		sidecartest.WantInvalid(t, err, "settings.time_zone")
	}
}

// TestUserSettingsShapeThePrompt: prompt_context uses the user's language and time zone.
func TestUserSettingsShapeThePrompt(t *testing.T) {
	t.Parallel()
	r := sidecartest.Serve(t, "time_zone=UTC")
	late := &memsidecarv1.Memory{Text: "喜欢吃辣", CreateTime: spring, Scope: sidecartest.Direct("u")}
	late.ObserveTime = spring // 09:46 UTC
	sidecartest.Must(r.Import(t, sidecartest.Direct("u"), late))(t)
	for _, test := range []struct{ language, zone, header, date string }{
		{"", "", "【关于用户的记忆", "[2026-03-20]"},
		{"en", "Pacific/Kiritimati", "【Memories of the user", "[2026-03-20]"},
		{"zh-Hant-TW", "Pacific/Pago_Pago", "【关于用户的记忆", "[2026-03-19]"},
		{"zh_CN", "", "【关于用户的记忆", "[2026-03-20]"},
		{"ja", "", "【Memories of the user", "[2026-03-20]"}, // en is used for other languages
	} {
		sidecartest.Must(r.UpdateUserSettings(t.Context(), &memsidecarv1.UpdateUserSettingsRequest{
			Scope: sidecartest.Direct(
				"u",
			), Settings: &memsidecarv1.UserSettings{Language: test.language, TimeZone: test.zone}, UpdateMask: sidecartest.Mask("*"),
		}))(t)
		got := sidecartest.Must(r.Retrieve(t.Context(), &memsidecarv1.RetrieveRequest{Scope: sidecartest.Direct("u"), Query: "吃辣"}))(
			t,
		).GetPromptContext()
		if !strings.HasPrefix(got, test.header) || !strings.Contains(got, "\n- "+test.date+" 喜欢吃辣\n") {
			t.Errorf("in %q and %q:\n%s", test.language, test.zone, got)
		}
	}
}

func TestStatus(t *testing.T) {
	t.Parallel()
	began, dir := time.Now().Truncate(time.Microsecond), t.TempDir() // as times are stored
	sidecartest.SeedConsideration(t, dir, sidecartest.Direct("u"), "stuck", sidecartest.Stuck)
	r := sidecartest.ServeIn(t, dir)
	s := sidecartest.Must(r.GetStatus(t.Context(), &memsidecarv1.GetStatusRequest{}))(t)
	if s.GetProcess().GetVersion() == "" || s.GetProcess().GetStartTime().AsTime().Before(began) ||
		!strings.HasPrefix(s.GetModels().GetEmbeddingFingerprint(), "local/") ||
		s.GetModels().GetEmbeddingProgress() != nil {
		t.Errorf("the status is %s", s)
	}
	if q := s.GetQueue(); q.GetPendingCount() != 1 || q.GetFailedCount() != 0 || q.GetOldestPendingTime().AsTime().Before(began) {
		t.Errorf("the queue is %s", q)
	}
	parts := map[string]*memsidecarv1.ComponentStatus{}
	for _, c := range sidecartest.ComponentsOf(s) {
		parts[c.GetName()] = c
	}
	for name, implementation := range map[string]string{
		"storage": "sqlite", "embedding": "local/", "decision": "none", "summary": "rules", "digest": "rules",
	} {
		c := parts[name]
		if !strings.HasPrefix(c.GetImplementation(), implementation) || c.GetRemote() || c.GetReason() != "" {
			t.Errorf("%s is %s", name, c)
		}
	}
	if got := parts["storage"].GetBreaker(); got != memsidecarv1.BreakerState_BREAKER_STATE_CLOSED || len(parts) != 5 {
		t.Errorf("the components are %s", sidecartest.ComponentsOf(s))
	}
	other := sidecartest.Must(
		r.GetStatus(t.Context(), &memsidecarv1.GetStatusRequest{Scope: &memsidecarv1.Scope{Namespace: "elsewhere"}}),
	)(
		t,
	)
	if q := other.GetQueue(); q == nil || q.GetPendingCount() != 0 || q.GetOldestPendingTime() != nil {
		t.Errorf("another namespace's queue is %s", q)
	}
}

// TestForgetUser: The receipt counts the deleted objects, other users keep theirs, and no byte is left.
func TestForgetUser(t *testing.T) {
	t.Parallel()
	r := sidecartest.Serve(t)
	const mark = "Zyxwvutsrq"
	r.Consider(t, sidecartest.Direct("alice"), sidecartest.Said("My name is "+mark+"."), sidecartest.Answered("Hello "+mark+"!"))
	r.Consider(t, sidecartest.Group("alice", "g"), by("alice", "I am allergic to "+mark+"."), by("bob", "My name is Bob."))
	r.Consider(
		t,
		sidecartest.Group("bob", "g"),
		by("bob", "I am allergic to peanuts."),
		by("alice", "My name is "+mark+"."),
		by("alice", mark+"?"),
		sidecartest.Answered("Both."),
	)
	r.Consider(t, sidecartest.Direct("alice"), sidecartest.Said("ok"))
	sidecartest.Must(
		r.CreateMemory(
			t.Context(),
			&memsidecarv1.CreateMemoryRequest{
				Scope:     sidecartest.Direct("alice"),
				Memory:    &memsidecarv1.Memory{Text: mark + " likes tea"},
				RequestId: mark,
			},
		),
	)(
		t,
	)
	sidecartest.Must(
		r.UpdateUserSettings(
			t.Context(),
			&memsidecarv1.UpdateUserSettingsRequest{
				Scope:    sidecartest.Direct("alice"),
				Settings: &memsidecarv1.UserSettings{Language: "en"},
			},
		),
	)(
		t,
	)
	sidecartest.Must(r.Retrieve(t.Context(), &memsidecarv1.RetrieveRequest{Scope: sidecartest.Direct("alice"), Query: "who is " + mark}))(t)
	sidecartest.Must(r.Retrieve(t.Context(), &memsidecarv1.RetrieveRequest{Scope: sidecartest.Direct("bob"), Query: "peanuts"}))(t)
	memories := int64(len(r.Memories(t, sidecartest.Direct("alice"))))
	bob := r.Export(t, sidecartest.Direct("bob"))
	if memories == 0 || !r.Export(t, sidecartest.Direct("alice")).Holds(mark) || len(sidecartest.FilesWith(t, r.Dir, mark)) == 0 {
		t.Fatal("nothing was stored, so nothing can be forgotten")
	}

	receipt := sidecartest.Must(r.ForgetUser(t.Context(), &memsidecarv1.ForgetUserRequest{Scope: sidecartest.WithoutChannel("alice")}))(t)
	wantSame(t, receipt, &memsidecarv1.ForgetUserResponse{
		MemoryCount: memories, ConsiderationCount: 4, MessageCount: 3, TraceCount: 5, SettingsDeleted: true, PurgedFromDisk: true,
		SessionMessageCount: 6, SessionCount: 1, DigestFindingCount: 3,
	})
	sidecartest.WantNoFileWith(t, r.Dir, mark)
	sidecartest.WantNoFileWith(t, r.Dir, "alice")
	gone := r.Export(t, sidecartest.Direct("alice"))
	if len(gone.Records) != 1 || gone.Settings.GetUpdateTime() != nil || len(r.Texts(t, sidecartest.Direct("alice"), mark)) != 0 {
		t.Errorf("after forgetting there is %s", gone.Records)
	}
	after := r.Export(t, sidecartest.Direct("bob"))
	if len(after.Memories) != len(bob.Memories) || len(after.Considerations) != len(bob.Considerations) || !after.Holds("peanuts") ||
		!after.Holds("Both.") ||
		after.Holds(mark) {
		t.Errorf("bob had %s and now has %s", bob.Records, after.Records)
	}
	again := sidecartest.Must(r.ForgetUser(t.Context(), &memsidecarv1.ForgetUserRequest{Scope: sidecartest.WithoutChannel("alice")}))(t)
	wantSame(t, again, &memsidecarv1.ForgetUserResponse{TraceCount: 1, PurgedFromDisk: true}) // the trace of the query above
	r.Stop()
	sidecartest.WantNoFileWith(t, r.Dir, mark)
	r = sidecartest.ServeIn(t, r.Dir) // nothing reappears in a new process
	if e := r.Export(t, sidecartest.Direct("alice")); len(e.Records) != 1 {
		t.Errorf("after a restart there is %s", e.Records)
	}
	if c := r.Consider(t, sidecartest.Direct("alice"), sidecartest.Said("My name is Anna.")); c.GetState() != sidecartest.Remembered {
		t.Errorf("a forgotten user can start again: %s", c)
	}
}
