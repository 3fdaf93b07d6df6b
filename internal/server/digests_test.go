package server_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"

	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"

	"github.com/memsidecar/memsidecar/internal/testkit/sidecartest"
)

func summarize(t *testing.T, r *sidecartest.Sidecar, scope *memsidecarv1.Scope, day string) *memsidecarv1.Digest {
	t.Helper()
	return sidecartest.Must(r.Digests().SummarizeDay(t.Context(), &memsidecarv1.SummarizeDayRequest{Scope: scope, Day: day}))(t).GetDigest()
}

// on returns a message with a time.
func on(at string, m *memsidecarv1.Message) *memsidecarv1.Message {
	parsed, err := time.Parse(time.RFC3339, at)
	if err != nil {
		panic(err)
	}
	m.SendTime = timestamppb.New(parsed)
	return m
}

func preferences(d *memsidecarv1.Digest) string {
	var list []string
	for _, p := range d.GetPreferences() {
		list = append(list, p.GetKey()+"="+p.GetValue())
	}
	return strings.Join(list, " ")
}

func issues(d *memsidecarv1.Digest) string {
	var list []string
	for _, i := range d.GetTechnicalIssues() {
		list = append(list, i.GetQuestion()+" => "+i.GetSolution())
	}
	return strings.Join(list, "\n")
}

const (
	oom      = "构建的时候一直报错out of memory，怎么解决？"
	oomFixed = "把环境变量GOMEMLIMIT设置成512MiB就可以了。"

	mountains, likesMountains = "I prefer mountains over the sea.", "preference=" + mountains
	jazz, likesJazz           = "I prefer jazz over rock music.", "preference=" + jazz
	cats, likesCats           = "I prefer cats over dogs.", "preference=" + cats
)

// TestDigestIsMadeAfterTheInterval: Enough messages trigger a digest. Several runs and sessions share one digest a day, without
// duplicates. Important findings become memories with their provenance.
func TestDigestIsMadeAfterTheInterval(t *testing.T) {
	t.Parallel()
	r := sidecartest.ServeFromNoon(t, "digest.interval=2", "session.memorize_every=0")
	scope := sidecartest.InSession(sidecartest.Direct("u"), "one")
	r.AppendTo(t, scope, sidecartest.Said(oom), sidecartest.Answered(oomFixed))
	if d := r.Digest(t, sidecartest.Direct("u"), ""); issues(d) != "" || d.GetWaitingCount() != 2 {
		t.Errorf("after one message the digest is %v", d)
	}
	r.AppendTo(t, scope, sidecartest.Said("我喜欢喝乌龙茶，不加糖。"), sidecartest.Answered("好。"))
	want := oom + " => " + oomFixed
	sidecartest.Eventually(t, "the digest is made", func() bool { return issues(r.Digest(t, sidecartest.Direct("u"), "")) == want })
	// Another session repeats the statement and adds one.
	r.AppendTo(
		t,
		sidecartest.InSession(sidecartest.Direct("u"), "two"),
		sidecartest.Said(oom),
		sidecartest.Answered(oomFixed),
		sidecartest.Said("我喜欢喝乌龙茶，不加糖！"),
		sidecartest.Said("我决定下个月换工作。"),
		sidecartest.Answered("好。"),
	)
	sidecartest.Eventually(t, "the digest goes on", func() bool { return len(r.Digest(t, sidecartest.Direct("u"), "").GetDecisions()) == 1 })
	sidecartest.Eventually(t, "what is important is remembered", func() bool { // after the digest has them
		list := r.Memories(t, sidecartest.Direct("u"))
		return len(list) == 3 && !slices.ContainsFunc(list, func(m *memsidecarv1.Memory) bool {
			return m.GetKind() != memsidecarv1.MemoryKind_MEMORY_KIND_DECISION && m.GetMentionCount() != 2
		})
	})
	d := r.Digest(t, sidecartest.Direct("u"), "")
	if issues(d) != want || preferences(d) != "偏好=我喜欢喝乌龙茶，不加糖。" || d.GetWaitingCount() != 0 || d.GetLanguage() != "zh" ||
		!strings.Contains(d.GetMarkdown(), "## 问题与解决\n- **问题**：构建") {
		t.Errorf("the digest is %v", d)
	}
	source := d.GetTechnicalIssues()[0].GetSource()
	var memories []*memsidecarv1.Memory
	sidecartest.Eventually(t, "what is important is remembered, after the digest is made", func() bool {
		memories = r.Memories(t, sidecartest.Direct("u"))
		return len(memories) == 3 && slices.ContainsFunc(memories, func(m *memsidecarv1.Memory) bool { return m.GetMentionCount() == 2 })
	})
	i := slices.IndexFunc(memories, func(m *memsidecarv1.Memory) bool { return m.GetId() == source.GetMemoryId() })
	if i < 0 || !strings.Contains(memories[i].GetText(), "GOMEMLIMIT") || memories[i].GetMentionCount() != 2 ||
		!strings.HasPrefix(memories[i].GetProvenance().GetReason(), "digest of ") || source.GetScope().GetSessionId() != "one" ||
		memories[i].GetProvenance().GetDecidedBy() != "rules" || memories[i].GetScope().GetSessionId() != "one" {
		t.Errorf("remembered are %v", memories)
	}
	if len(memories) != 3 {
		t.Errorf("%d memories, want the issue, the preference and the decision: %v", len(memories), memories)
	}
}

// TestSummarizeDayIncludesPendingMessages: A requested digest includes everything said so far: pending considerations, and answers that
// are appended in their own call.
func TestSummarizeDayIncludesPendingMessages(t *testing.T) {
	t.Parallel()
	r := sidecartest.ServeFromNoon(t, "digest.interval=2")
	scope := sidecartest.InSession(sidecartest.Direct("u"), "one")
	r.AppendTo(t, scope, sidecartest.Said("我决定下个月换工作。"))
	r.AppendTo(t, scope, sidecartest.Answered("好。"))
	r.AppendTo(t, scope, sidecartest.Said("我喜欢喝乌龙茶，不加糖。"+oom))
	r.AppendTo(t, scope, sidecartest.Answered(oomFixed))
	d := summarize(t, r, sidecartest.Direct("u"), "")
	if issues(d) != oom+" => "+oomFixed || len(d.GetDecisions()) != 1 || !strings.Contains(preferences(d), "乌龙茶") {
		t.Errorf("the digest is %v", d)
	}
}

// TestDigestInAGroupOmitsDirectChats: A digest shown in a group has nothing from a direct chat, another group or another user.
func TestDigestInAGroupOmitsDirectChats(t *testing.T) {
	t.Parallel()
	r := sidecartest.ServeFromNoon(t, "digest.interval=0", "time_zone=UTC")
	const day = "2026-11-01"
	say := func(scope *memsidecarv1.Scope, text string) {
		r.AppendTo(t, scope, on(day+"T10:00:00Z", sidecartest.Said(text)))
	}
	say(sidecartest.Direct("u"), mountains)
	say(sidecartest.Group("u", "g"), cats)
	say(sidecartest.Group("u", "h"), jazz)
	say(sidecartest.Group("v", "g"), "I prefer tea to coffee.")
	for range 2 {
		if got := preferences(summarize(t, r, sidecartest.Group("u", "g"), day)); got != likesCats {
			t.Errorf("in the group there is %s", got)
		}
	}
	if got := preferences(r.Digest(t, sidecartest.Direct("u"), day)); got != likesMountains+" "+likesCats+" "+likesJazz {
		t.Errorf("in the direct chat there is %s", got)
	}
	book := sidecartest.Must(r.Digests().GetNotebook(t.Context(), &memsidecarv1.GetNotebookRequest{Scope: sidecartest.Group("u", "g")}))(t).GetNotebook()
	if book.GetEntryCount() != 1 || strings.Contains(book.GetMarkdown(), "mountains") {
		t.Errorf("the notebook in the group is %s", book.GetMarkdown())
	}
	list := sidecartest.Must(r.Digests().ListDigests(t.Context(), &memsidecarv1.ListDigestsRequest{Scope: sidecartest.Group("u", "h")}))(t).GetDigests()
	if len(list) != 1 || preferences(list[0]) != likesJazz {
		t.Errorf("in the other group there is %v", list)
	}
}

// TestDigestDayFollowsTheUsersTimeZone: A message's day depends on the user's time zone. ListDigests lists the days.
func TestDigestDayFollowsTheUsersTimeZone(t *testing.T) {
	t.Parallel()
	r := sidecartest.ServeFromNoon(t, "digest.enabled=false", "time_zone=UTC", "session.memorize_every=0")
	r.AppendTo(
		t,
		sidecartest.Direct("u"),
		on("2026-11-01T15:00:00Z", sidecartest.Said(jazz)),
		on("2026-11-01T17:00:00Z", sidecartest.Said(mountains)),
		on("2026-11-05T17:00:00Z", sidecartest.Said(cats)),
	)
	if got := preferences(r.Digest(t, sidecartest.Direct("u"), "2026-11-01")); got != "" {
		t.Errorf("made by itself: %s", got)
	}
	if got := preferences(summarize(t, r, sidecartest.Direct("u"), "2026-11-01")); got != likesJazz+" "+likesMountains {
		t.Errorf("the day is %s", got)
	}
	if got := preferences(r.Digest(t, sidecartest.Direct("u"), "2026-11-05")); got != "" {
		t.Errorf("another day was looked at, too: %s", got)
	}
	sidecartest.Must(r.UpdateUserSettings(t.Context(), &memsidecarv1.UpdateUserSettingsRequest{
		Scope: sidecartest.Direct("u"), Settings: &memsidecarv1.UserSettings{TimeZone: "Asia/Shanghai"},
	}))(t)
	summarize(t, r, sidecartest.Direct("u"), "2026-11-06") // in the user's time zone it was after midnight
	var days []string
	token := ""
	for {
		page := sidecartest.Must(
			r.Digests().ListDigests(t.Context(), &memsidecarv1.ListDigestsRequest{Scope: sidecartest.Direct("u"), PageSize: 1, PageToken: token}),
		)(
			t,
		)
		for _, d := range page.GetDigests() {
			days = append(days, d.GetDay()+" "+preferences(d))
		}
		if token = page.GetNextPageToken(); token == "" {
			break
		}
	}
	if want := []string{"2026-11-06 " + likesCats, "2026-11-02 " + likesMountains, "2026-11-01 " + likesJazz}; !slices.Equal(days, want) {
		t.Errorf("the days are %q, want %q", days, want)
	}
	_, err := r.Digests().GetDigest(t.Context(), &memsidecarv1.GetDigestRequest{Scope: sidecartest.Direct("u"), Day: "1.11."})
	if status.Code(err) != codes.InvalidArgument {
		t.Errorf("a wrong day is %v", err)
	}
}

// TestDigestReusesConsiderations: The digest reuses the findings of considerations. Deleted memories are removed from it.
func TestDigestReusesConsiderations(t *testing.T) {
	t.Parallel()
	r := sidecartest.ServeFromNoon(t, "digest.interval=0")
	r.Consider(t, sidecartest.Direct("u"), sidecartest.Said("我对花生过敏，喜欢吃辣。"), sidecartest.Answered("记住了。"))
	d := summarize(t, r, sidecartest.Direct("u"), "")
	memories := r.Memories(t, sidecartest.Direct("u"))
	if len(memories) == 0 || len(d.GetPreferences())+len(d.GetKeyInsights()) != len(memories) {
		t.Fatalf("of %v the digest has %v", memories, d)
	}
	for _, m := range memories {
		if m.GetMentionCount() != 1 {
			t.Errorf("found again: %v", m)
		}
		sidecartest.Must(r.DeleteMemory(t.Context(), &memsidecarv1.DeleteMemoryRequest{Scope: sidecartest.Direct("u"), MemoryId: m.GetId()}))(t)
	}
	if d := r.Digest(t, sidecartest.Direct("u"), ""); len(d.GetPreferences())+len(d.GetKeyInsights()) != 0 {
		t.Errorf("the digest still has deleted memories: %v", d)
	}
}

// TestDigestKeepsNegationsApart: A statement that differs by a negation is stored as another memory. A repeated statement
// reinforces the first.
func TestDigestKeepsNegationsApart(t *testing.T) {
	t.Parallel()
	r := sidecartest.ServeFromNoon(t, "digest.interval=0", "session.memorize_every=0")
	r.Create(t, sidecartest.Direct("u"), "我对花生过敏")
	r.Create(t, sidecartest.Direct("u"), "我喜欢吃辣，不喜欢吃甜的")
	r.AppendTo(t, sidecartest.Direct("u"), sidecartest.Said("我对花生不过敏。"), sidecartest.Said("我喜欢吃辣，不喜欢吃甜的。"))
	summarize(t, r, sidecartest.Direct("u"), "")
	var texts []string
	for _, m := range r.Memories(t, sidecartest.Direct("u")) {
		if m.GetMentionCount() > 1 {
			texts = append(texts, "again: "+m.GetText())
		} else {
			texts = append(texts, m.GetText())
		}
	}
	slices.Sort(texts)
	if want := []string{"again: 我喜欢吃辣，不喜欢吃甜的", "我对花生不过敏。", "我对花生过敏"}; !slices.Equal(texts, want) {
		t.Errorf("remembered are %q, want %q", texts, want)
	}
}

// TestDigestOmitsPausedUsersAndDeletedSessions: A digest has nothing of paused users. Deleting a session removes its findings.
func TestDigestOmitsPausedUsersAndDeletedSessions(t *testing.T) {
	t.Parallel()
	r := sidecartest.ServeFromNoon(t, "digest.interval=1", "session.memorize_every=0")
	pause := func(paused bool) {
		sidecartest.Must(r.UpdateUserSettings(t.Context(), &memsidecarv1.UpdateUserSettingsRequest{
			Scope: sidecartest.Direct("u"), Settings: &memsidecarv1.UserSettings{Paused: paused}, UpdateMask: sidecartest.Mask("paused"),
		}))(t)
	}
	pause(true)
	r.AppendTo(t, sidecartest.InSession(sidecartest.Direct("u"), "secret"), sidecartest.Said("我平时喜欢喝黑咖啡，不加糖。"))
	_, err := r.Digests().SummarizeDay(t.Context(), &memsidecarv1.SummarizeDayRequest{Scope: sidecartest.Direct("u")})
	if status.Code(err) != codes.FailedPrecondition {
		t.Errorf("summarising a paused user's day is %v", err)
	}
	pause(false)
	r.AppendTo(t, sidecartest.InSession(sidecartest.Direct("u"), "kept"), sidecartest.Said("我喜欢吃辣，不喜欢吃甜的。"))
	r.AppendTo(t, sidecartest.InSession(sidecartest.Direct("u"), "doomed"), sidecartest.Said("我喜欢喝乌龙茶，不加糖。"))
	if got := preferences(summarize(t, r, sidecartest.Direct("u"), "")); got != "偏好=我喜欢吃辣，不喜欢吃甜的。 偏好=我喜欢喝乌龙茶，不加糖。" {
		t.Errorf("the digest is %s", got)
	}
	sidecartest.Must(
		r.Sessions().DeleteSession(t.Context(), &memsidecarv1.DeleteSessionRequest{Scope: sidecartest.InSession(sidecartest.Direct("u"), "doomed")}),
	)(
		t,
	)
	if got := preferences(summarize(t, r, sidecartest.Direct("u"), "")); got != "偏好=我喜欢吃辣，不喜欢吃甜的。" {
		t.Errorf("after the session was deleted the digest is %s", got)
	}
}

// TestDigestFilesAreWrittenAndRead: Digest files are written automatically. Lines that people add are imported once and kept. ForgetUser
// removes all files.
func TestDigestFilesAreWrittenAndRead(t *testing.T) {
	t.Parallel()
	notes := t.TempDir()
	r := sidecartest.ServeFromNoon(t, "digest.interval=1", "session.memorize_every=0", "digest.export_dir="+notes, "time_zone=UTC")
	user := &memsidecarv1.Scope{Namespace: "a/b", UserId: "../小林", ChannelKind: memsidecarv1.ChannelKind_CHANNEL_KIND_DIRECT}
	r.AppendTo(t, user, on("2026-11-01T04:00:00Z", sidecartest.Said("我喜欢喝乌龙茶。")), on("2026-11-01T04:00:01Z", sidecartest.Answered("好。")))
	find := func(name string) string {
		found := sidecartest.Must(filepath.Glob(filepath.Join(notes, "*", "*", name)))(t)
		if len(found) != 1 {
			return ""
		}
		return found[0]
	}
	sidecartest.Eventually(t, "files are written", func() bool { return find("MEMORY.md") != "" && find("2026-11-01.md") != "" })
	path := find("MEMORY.md")
	text := string(sidecartest.Must(os.ReadFile(path))(t))
	sidecartest.NoError(t, os.WriteFile(path, []byte("我自己写的：\n\n- 我的医生姓陈\n\n"+text), 0o600))
	r.AppendTo(t, user, on("2026-11-02T04:00:00Z", sidecartest.Said("我喜欢喝咖啡。")), on("2026-11-02T04:00:01Z", sidecartest.Answered("好。")))
	sidecartest.Eventually(t, "the notebook is written anew", func() bool {
		return strings.Contains(string(sidecartest.Must(os.ReadFile(path))(t)), "咖啡")
	})
	if text := string(sidecartest.Must(os.ReadFile(path))(t)); !strings.HasPrefix(text, "我自己写的：\n\n- 我的医生姓陈\n\n<!-- memsidecar:begin -->\n") ||
		strings.Count(text, "我的医生姓陈") != 2 {
		t.Errorf("the file is\n%s", text)
	}
	var mine []*memsidecarv1.Memory
	for _, m := range r.Memories(t, user) {
		if m.GetProvenance().GetReason() == "written into MEMORY.md" {
			mine = append(mine, m)
		}
	}
	if len(mine) != 2 || !mine[0].GetExplicit() || mine[0].GetMentionCount() != 1 {
		t.Errorf("imported were %v", mine)
	}
	forgotten := sidecartest.Must(
		r.ForgetUser(t.Context(), &memsidecarv1.ForgetUserRequest{Scope: &memsidecarv1.Scope{Namespace: user.GetNamespace(), UserId: user.GetUserId()}}),
	)(
		t,
	)
	left := sidecartest.Must(os.ReadDir(notes))(t)
	if forgotten.GetFileCount() != 3 || len(left) != 0 {
		t.Errorf("the receipt is %v, and there is %v", forgotten, left)
	}
}
