package server_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"

	"github.com/memsidecar/memsidecar/internal/testkit/sidecartest"
)

func setZone(t *testing.T, r *sidecartest.Sidecar, user, zone string) {
	t.Helper()
	sidecartest.Must(r.UpdateUserSettings(t.Context(), &memsidecarv1.UpdateUserSettingsRequest{
		Scope: &memsidecarv1.Scope{UserId: user}, Settings: &memsidecarv1.UserSettings{TimeZone: zone},
	}))(t)
}

// TestDigestOfADayWithoutMidnight: Where daylight saving time begins at midnight, that day and the day before have their own messages.
func TestDigestOfADayWithoutMidnight(t *testing.T) {
	t.Parallel()
	r := sidecartest.Serve(t, "digest.interval=0")
	setZone(t, r, "u", "America/Havana") // there 2026-03-08 begins at 01:00, which is 05:00 UTC
	r.AppendTo(
		t,
		sidecartest.Direct("u"),
		on("2026-03-07T12:00:00Z", sidecartest.Said("我周末喜欢吃火锅，越辣越好。")),
		on("2026-03-08T04:30:00Z", sidecartest.Said("我喜欢喝乌龙茶，不加糖。")),
		on("2026-03-08T05:30:00Z", sidecartest.Said("I prefer mountains over the sea.")),
		on("2026-03-09T03:30:00Z", sidecartest.Said("I prefer cats over dogs.")),
	)
	want := map[string]string{
		"2026-03-07": "偏好=我周末喜欢吃火锅，越辣越好。 偏好=我喜欢喝乌龙茶，不加糖。",
		"2026-03-08": "preference=I prefer mountains over the sea. preference=I prefer cats over dogs.",
	}
	for day, days := range want {
		if d := summarize(t, r, sidecartest.Direct("u"), day); d.GetDay() != day || preferences(d) != days || d.GetWaitingCount() != 0 {
			t.Errorf("the digest of %s is that of %s, with %s and %d waiting; want %s", day, d.GetDay(), preferences(d), d.GetWaitingCount(), days)
		}
	}
	var listed []string
	request := &memsidecarv1.ListDigestsRequest{Scope: sidecartest.Direct("u"), PageSize: 1}
	for {
		page := sidecartest.Must(r.Digests().ListDigests(t.Context(), request))(t)
		for _, d := range page.GetDigests() {
			listed = append(listed, d.GetDay()+" "+preferences(d))
		}
		if request.PageToken = page.GetNextPageToken(); request.GetPageToken() == "" {
			break
		}
	}
	if got, all := strings.Join(listed, "; "), "2026-03-08 "+want["2026-03-08"]+"; 2026-03-07 "+want["2026-03-07"]; got != all {
		t.Errorf("listed are %s; want %s", got, all)
	}
}

// TestNotebookDatesFollowTheUsersTimeZone: The notebook uses the dates of the user's time zone, as Retrieve does.
func TestNotebookDatesFollowTheUsersTimeZone(t *testing.T) {
	t.Parallel()
	notes := t.TempDir()
	r := sidecartest.Serve(t, "digest.interval=0", "digest.export_dir="+notes, "time_zone=UTC")
	for user, c := range map[string]struct{ zone, want string }{
		"shanghai": {"Asia/Shanghai", "2026-11-20"}, "lima": {"America/Lima", "2026-11-19"}, "nowhere": {"", "2026-11-19"},
	} {
		if c.zone != "" {
			setZone(t, r, user, c.zone)
		}
		r.AppendTo(t, sidecartest.Direct(user), on("2026-11-19T23:30:00Z", sidecartest.Said("我喜欢喝乌龙茶，不加糖。")))
		summarize(t, r, sidecartest.Direct(user), c.want)
		book := sidecartest.Must(r.Digests().GetNotebook(t.Context(), &memsidecarv1.GetNotebookRequest{Scope: sidecartest.Direct(user)}))(t).GetNotebook()
		file := string(sidecartest.Must(os.ReadFile(filepath.Join(notes, "default", user, "MEMORY.md")))(t))
		found := sidecartest.Must(r.Retrieve(t.Context(), &memsidecarv1.RetrieveRequest{Scope: sidecartest.Direct(user), Query: "乌龙茶"}))(t).GetPromptContext()
		if line := "- 我喜欢喝乌龙茶，不加糖。 (" + c.want + ")\n"; !strings.Contains(book.GetMarkdown(), line) || !strings.Contains(file, line) ||
			!strings.Contains(found, "["+c.want+"]") {
			t.Errorf("of %s the notebook is\n%s\nits file\n%s\nand retrieved is\n%s", user, book.GetMarkdown(), file, found)
		}
	}
}

// TestNotebookSurvivesUnreadableNotes: A notebook is read and written even if a line added by hand cannot be parsed. A file that could
// not be written is written with the next day's.
func TestNotebookSurvivesUnreadableNotes(t *testing.T) {
	t.Parallel()
	notes := t.TempDir()
	folder := filepath.Join(notes, "default", "u")
	blocked := filepath.Join(folder, "2026-11-01.md")
	sidecartest.NoError(t, os.MkdirAll(blocked, 0o700)) // a folder where the file should be
	r := sidecartest.Serve(t, "digest.interval=0", "session.memorize_every=0", "digest.export_dir="+notes, "time_zone=UTC", "limits.namespace_memories=1")
	say := func(day, text string) {
		r.AppendTo(t, sidecartest.Direct("u"), on(day+"T10:00:00Z", sidecartest.Said(text)))
		summarize(t, r, sidecartest.Direct("u"), day)
	}
	say("2026-11-01", "我喜欢喝乌龙茶，不加糖。")
	sidecartest.NoError(t, os.Remove(blocked))
	path := filepath.Join(folder, "MEMORY.md")
	sidecartest.NoError(t, os.WriteFile(path, []byte("- 我的医生姓陈\n"), 0o600))
	book := sidecartest.Must(r.Digests().GetNotebook(t.Context(), &memsidecarv1.GetNotebookRequest{Scope: sidecartest.Direct("u")}))(t).GetNotebook()
	if !strings.Contains(book.GetMarkdown(), "乌龙茶") || strings.Contains(book.GetMarkdown(), "陈") {
		t.Errorf("the notebook is\n%s", book.GetMarkdown())
	}
	say("2026-11-02", "我周末喜欢吃火锅，越辣越好。") // one more than the limit
	for file, want := range map[string]string{path: "乌龙茶", blocked: "乌龙茶", filepath.Join(folder, "2026-11-02.md"): "火锅"} {
		if text := string(sidecartest.Must(os.ReadFile(file))(t)); !strings.Contains(text, want) {
			t.Errorf("%s is\n%s", filepath.Base(file), text)
		}
	}
	if text := string(sidecartest.Must(os.ReadFile(path))(t)); !strings.HasPrefix(text, "- 我的医生姓陈\n") {
		t.Errorf("the line added by hand is not in\n%s", text)
	}
}

// TestTopicsSurviveForgettingAnotherUser: Topics still find old messages after another user's messages were removed from the session.
func TestTopicsSurviveForgettingAnotherUser(t *testing.T) {
	t.Parallel()
	r := sidecartest.Serve(t)
	talk := func(user string) *memsidecarv1.Scope {
		return sidecartest.InSession(sidecartest.Group(user, "g"), "talk")
	}
	r.AppendTo(t, talk("a"), on("2026-11-10T10:00:00Z", sidecartest.Said("大家好")))
	r.AppendTo(t, talk("b"), on("2026-11-01T10:00:00Z", sidecartest.Said("周末去打羽毛球吗？")), on("2026-11-20T10:00:00Z", sidecartest.Said("今天吃火锅")),
		on("2026-11-01T10:01:00Z", sidecartest.Said("羽毛球拍我带了。")), on("2026-11-20T10:01:00Z", sidecartest.Said("火锅店订好了")))
	r.AppendTo(t, talk("c"), on("2026-11-10T11:00:00Z", sidecartest.Said("好的")))
	r.AppendTo(t, talk("a"), on("2026-11-10T12:00:00Z", sidecartest.Said("走吧")))
	topics := func(day int) string {
		from := time.Date(2026, 11, day, 0, 0, 0, 0, time.UTC)
		found := sidecartest.Must(r.Sessions().GetTopics(t.Context(), &memsidecarv1.GetTopicsRequest{
			Scope: talk("a"), AfterTime: timestamppb.New(from), BeforeTime: timestamppb.New(from.AddDate(0, 0, 1)),
		}))(t)
		var words []string
		for _, topic := range found.GetTopics() {
			words = append(words, topic.GetText())
		}
		return strings.Join(words, " ")
	}
	for _, when := range []string{"before", "after"} {
		if first, last := topics(1), topics(20); first != "羽毛球" || last != "火锅" {
			t.Errorf("%s another user is forgotten the topics are %q and %q", when, first, last)
		}
		sidecartest.Must(r.ForgetUser(t.Context(), &memsidecarv1.ForgetUserRequest{Scope: &memsidecarv1.Scope{UserId: "c"}}))(t)
	}
	s := sidecartest.Must(r.Sessions().GetSession(t.Context(), &memsidecarv1.GetSessionRequest{Scope: talk("a")}))(t).GetSession()
	if first, last := s.GetFirstMessageTime().AsTime(), s.GetLastMessageTime().AsTime(); first.Day() != 1 || last.Day() != 20 {
		t.Errorf("the session began on %s and ended on %s", first, last)
	}
}

// TestDigestConsidersAllSessionsFirst: Pending messages are considered before the digest, in all sessions of the user.
func TestDigestConsidersAllSessionsFirst(t *testing.T) {
	t.Parallel()
	r := sidecartest.Serve(t, "digest.interval=0")
	for i := range 52 { // more sessions than one step considers
		scope := sidecartest.InSession(sidecartest.Direct("u"), fmt.Sprint("s", i))
		r.AppendTo(t, scope, sidecartest.Answered("你好"))
		if i == 51 {
			r.AppendTo(t, scope, sidecartest.Said("我喜欢喝乌龙茶，不加糖。"))
		}
	}
	summarize(t, r, sidecartest.Direct("u"), "")
	last := sidecartest.Must(r.Sessions().GetSession(t.Context(), &memsidecarv1.GetSessionRequest{Scope: sidecartest.InSession(sidecartest.Direct("u"), "s51")}))(
		t,
	).GetSession()
	if last.GetUnconsideredCount() != 0 || len(r.Memories(t, sidecartest.Direct("u"))) != 1 {
		t.Errorf("of the newest session %d messages wait, and remembered is %v", last.GetUnconsideredCount(), r.Memories(t, sidecartest.Direct("u")))
	}
}

// TestDeleteSessionOfManyUsers: Deleting a session deletes the memories of all its users, even if they are too many to be listed in the
// session.
func TestDeleteSessionOfManyUsers(t *testing.T) {
	t.Parallel()
	r := sidecartest.Serve(t, "session.memorize_every=0", "digest.enabled=false", "history.vectors=0")
	var crowd []*memsidecarv1.Message
	for i := range 1003 {
		m := sidecartest.Said("大家好")
		m.SpeakerId = fmt.Sprint("u", i)
		if crowd = append(crowd, m); len(crowd) == 501 || i == 1002 {
			r.AppendTo(t, sidecartest.InSession(sidecartest.Group("u0", "g"), "party"), crowd...)
			crowd = nil
		}
	}
	for _, user := range []string{"u0", "u1001", "u1002"} {
		sidecartest.Must(r.CreateMemory(t.Context(), &memsidecarv1.CreateMemoryRequest{
			Scope: sidecartest.InSession(sidecartest.Group(user, "g"), "party"), Memory: &memsidecarv1.Memory{Text: user + " likes snow."},
		}))(t)
	}
	done := sidecartest.Must(
		r.Sessions().
			DeleteSession(t.Context(), &memsidecarv1.DeleteSessionRequest{Scope: sidecartest.InSession(sidecartest.Group("u0", "g"), "party"), DeleteMemories: true}),
	)(
		t,
	)
	if done.GetMemoryCount() != 3 || done.GetMessageCount() != 1003 || len(r.Memories(t, sidecartest.Group("u1002", "g"))) != 0 {
		t.Errorf("deleted were %v, and left is %v", done, r.Memories(t, sidecartest.Group("u1002", "g")))
	}
}
