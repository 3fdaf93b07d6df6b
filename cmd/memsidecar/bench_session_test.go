package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/memsidecar/memsidecar/internal/embed"
	embedlocal "github.com/memsidecar/memsidecar/internal/embed/local"
	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/retrieve"
	"github.com/memsidecar/memsidecar/internal/retrieve/recall"
	"github.com/memsidecar/memsidecar/internal/session"
	"github.com/memsidecar/memsidecar/internal/sidecar"
	"github.com/memsidecar/memsidecar/internal/sqlite"
	"github.com/memsidecar/memsidecar/internal/sqlstore"
	"github.com/memsidecar/memsidecar/internal/vectorstore"
	storelocal "github.com/memsidecar/memsidecar/internal/vectorstore/local"
)

// history is a database with one user's past messages in one session, the longest possible. The newest messages do not depend on the
// total number. A million take some minutes to build, and 0.6 GB.
type history struct{ messages int }

var (
	shortHistory = history{messages: 1000}
	longHistory  = history{messages: 1_000_000}
)

// historyBatch is the number of messages per commit.
const historyBatch = 1000

// historyScope is the scope of the conversation.
func historyScope() memory.Scope {
	user := benchUser(0)
	return memory.Scope{
		Namespace: user.Namespace, UserID: user.ID, AgentID: "bot", SessionID: "main", Channel: memory.Channel{Kind: memory.ChannelDirect},
	}
}

// buildStats is what was measured while a history was built.
type buildStats struct {
	Indexing       time.Duration
	Bytes, OfIndex int64
}

func (h history) dir(b *testing.B) string {
	b.Helper()
	dir := buildOnce(b, fmt.Sprintf("history-%d", h.messages), func(dir string) error { return h.build(b.Context(), dir) })
	data, err := os.ReadFile(filepath.Join(dir, "made.json"))
	var m buildStats
	if err := firstError(err, json.Unmarshal(data, &m)); err != nil {
		b.Fatal(err)
	}
	if h == longHistory {
		n := float64(h.messages)
		benchmarks.add(benchRow{
			name: "keyword index of 1,000,000 messages", measured: short(m.Indexing), reference: fmt.Sprintf("%.0f/s", n/m.Indexing.Seconds()),
		})
		benchmarks.add(benchRow{
			name: "disk a message", measured: fmt.Sprintf("%.0f bytes", float64(m.Bytes)/n), reference: fmt.Sprintf("%.0f of them the index", float64(m.OfIndex)/n),
		})
	}
	return dir
}

// build appends the messages and does the background work on them.
func (h history) build(ctx context.Context, dir string) (err error) {
	storage, err := sqlite.Open(ctx, sqlite.Options{Dir: dir, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	defer func() { err = firstError(err, storage.Close()) }()
	if err := h.converse(ctx, sqlstore.NewSessions(storage, sqlstore.NewQueue(storage))); err != nil {
		return err
	}
	before, err := sizeOnDisk(ctx, storage, dir)
	if err != nil {
		return err
	}
	index := sqlstore.NewRecall(storage)
	started := time.Now()
	for more := true; more; {
		if more, err = index.IndexNext(ctx); err != nil {
			return err
		}
	}
	m := buildStats{Indexing: time.Since(started)}
	if m.Bytes, err = sizeOnDisk(ctx, storage, dir); err != nil {
		return err
	}
	m.OfIndex = m.Bytes - before
	if err := h.embed(ctx, storage, index); err != nil {
		return err
	}
	data, err := json.Marshal(m)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "made.json"), data, 0o600)
}

// sizeOnDisk is the size of the database after a checkpoint.
func sizeOnDisk(ctx context.Context, storage *sqlite.Storage, dir string) (int64, error) {
	if done, err := storage.Purge(ctx); err != nil || !done {
		return 0, firstError(err, errors.New("the log was not written back"))
	}
	info, err := os.Stat(filepath.Join(dir, "memsidecar.db"))
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// converse appends messages, one a minute until a day, and a summary of the part that is outside of the window.
func (h history) converse(ctx context.Context, sessions *sqlstore.Sessions) error {
	scope, last := historyScope(), time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	for from := 0; from < h.messages; from += historyBatch {
		a := session.Append{Scope: scope, Audience: memory.Everything(), Settled: true}
		for n := from; n < from+historyBatch; n++ {
			age := h.messages - 1 - n
			a.At = last.Add(-time.Duration(age) * time.Minute)
			m := memory.Message{Role: memory.RoleUser, Speaker: scope.UserID, Content: sentenceOf(age).String(), Time: a.At}
			if n%2 == 1 {
				m.Role, m.Speaker, m.AgentID = memory.RoleAssistant, "", scope.AgentID
			}
			a.Messages = append(a.Messages, m)
		}
		if _, err := sessions.Append(ctx, a); err != nil {
			return err
		}
	}
	older, err := sessions.Older(ctx, scope.Namespace, scope.SessionID, 0, "", 0)
	if err != nil {
		return err
	}
	return sessions.SaveSummary(ctx, scope.Namespace, scope.SessionID, older.Revision, session.Summary{
		Text: sentenceOf(0).String(), Last: int64(h.messages - 10), Messages: int64(h.messages - 10), MadeBy: "extract", At: last,
	})
}

// embed embeds the newest messages. Older ones need no vectors: there is one user.
func (h history) embed(ctx context.Context, storage *sqlite.Storage, index *sqlstore.Recall) error {
	const vectors = 1000 // default of history.vectors
	embedder, err := embedlocal.New(256)
	if err != nil {
		return err
	}
	fingerprint := embedder.Fingerprint().String()
	if _, _, err := storelocal.New(storage, storelocal.Options{IndexBudget: 1 << 20}).UseFingerprint(ctx, fingerprint); err != nil {
		return err
	}
	if _, err := index.Progress(ctx, fingerprint); err != nil {
		return err
	}
	for after := int64(h.messages - vectors); ; {
		missing, next, err := index.Missing(ctx, after, vectors, vectors)
		if err != nil || next == after {
			return err
		}
		texts, list := make([]string, len(missing)), make([]recall.Vector, len(missing))
		for i, m := range missing {
			texts[i] = m.Text
		}
		embedded, err := embedder.Embed(ctx, embed.ForDocument, texts)
		if err != nil {
			return err
		}
		for i, m := range missing {
			list[i] = recall.Vector{Row: m.Row, UserRow: m.UserRow, Vector: embedded[i]}
		}
		if err := index.SetVectors(ctx, fingerprint, list, next, vectors); err != nil {
			return err
		}
		after = next
	}
}

// vocabulary is the number of words of each language. Their frequencies follow Zipf's law, like those of natural words: the n-th most
// frequent word occurs 1/n as often as the first.
const vocabulary = 25_000

// sentence is a generated sentence: the frequency ranks of its words.
type sentence struct {
	chinese bool
	words   []int
}

// sentenceOf returns the message that came this many messages before the newest. Every other pair of messages is Chinese.
func sentenceOf(age int) sentence {
	random := rand.New(rand.NewPCG(uint64(age), 3))
	s := sentence{chinese: age/2%2 == 1}
	words := 5 + random.IntN(12)
	if age%2 == 0 { // the bot's messages are longer
		words *= 2
	}
	for range words {
		s.words = append(s.words, int(math.Pow(vocabulary+1, random.Float64()))-1)
	}
	return s
}

// word returns the word with a frequency rank: two characters in Chinese, syllables otherwise.
func (s sentence) word(rank int) string {
	if s.chinese {
		return string([]rune{rune(0x4E00 + rank*7%3500), rune(0x4E00 + rank*13%3491)})
	}
	const consonants, vowels = "bdfgklmnprstvz", "aeiou"
	var word []byte
	for rest := rank + len(consonants)*len(vowels); rest > 0; rest /= len(consonants) * len(vowels) {
		word = append(word, consonants[rest%len(consonants)], vowels[rest/len(consonants)%len(vowels)])
	}
	return string(word)
}

func (s sentence) String() string {
	space, comma, end := " ", ", ", "."
	if s.chinese {
		space, comma, end = "", "，", "。"
	}
	var text strings.Builder
	for i, rank := range s.words {
		switch {
		case i > 0 && i%7 == 0:
			text.WriteString(comma)
		case i > 0:
			text.WriteString(space)
		}
		text.WriteString(s.word(rank))
	}
	return text.String() + end
}

// question is about a recent message, and has some of its words.
type question string

const (
	rareWords   question = "three rare words"
	mixedWords  question = "six words, rare to common"
	commonWords question = "six of the most common words"
)

func (q question) text(n int) string {
	s := sentenceOf(n * 7 % shortHistory.messages)
	slices.Sort(s.words)
	last := len(s.words) - 1
	switch q {
	case rareWords:
		s.words = s.words[last-2:]
	case mixedWords:
		s.words = []int{s.words[last], s.words[last-1], s.words[last/2+1], s.words[last/2], s.words[1], s.words[0]}
	case commonWords:
		s.words = rand.New(rand.NewPCG(uint64(n), 4)).Perm(20)[:6]
	}
	return s.String()
}

// benchName returns a benchmark's name in the list of benchmarks.
func benchName(row string) string { return strings.NewReplacer(" ", "-", ",", "").Replace(row) }

// startOnHistory runs a sidecar on a history. The session never expires, whenever the history was built.
func startOnHistory(b *testing.B, dir string) *sidecar.Sidecar {
	b.Helper()
	return startOn(b, dir, map[string]string{"session.ttl": "87600h", "embedding.cache_entries": "0"})
}

// BenchmarkRetrieveMessages compares a whole Retrieve of past messages in process, neighbours included, in a history of a million
// messages with one of a thousand.
func BenchmarkRetrieveMessages(b *testing.B) {
	million, thousand := startOnHistory(b, longHistory.dir(b)), startOnHistory(b, shortHistory.dir(b))
	for _, kind := range []question{rareWords, mixedWords, commonWords} {
		b.Run(benchName(string(kind)), func(b *testing.B) {
			ask := func(s *sidecar.Sidecar) side {
				return func(n int) {
					result, err := s.Retriever.Retrieve(b.Context(), retrieve.Query{
						Scope: historyScope(), Text: kind.text(n), Sources: []retrieve.Source{retrieve.Messages}, Neighbors: 1,
						Filter: vectorstore.Filter{Audience: memory.Everything()}, TopK: benchTopK, MinRelevance: 0.02, MaxContextRunes: 2000,
					})
					if err != nil || len(result.Degraded) > 0 || len(result.Messages) == 0 {
						b.Fatalf("%d messages, degraded: %v, %v", len(result.Messages), result.Degraded, err)
					}
				}
			}
			of, to := inTurn(b, ask(million), ask(thousand))
			reportTime(b, "Retrieve of messages, "+string(kind)+", 1,000,000 / 1,000", 20*time.Millisecond, of, to)
		})
	}
}

// BenchmarkListMessages compares a page of 20 messages of a session of a million with one of a thousand: the newest page, one in the
// middle, and one of a single agent.
func BenchmarkListMessages(b *testing.B) {
	million, thousand := startOnHistory(b, longHistory.dir(b)), startOnHistory(b, shortHistory.dir(b))
	scope := historyScope()
	viewer := session.Viewer{Namespace: scope.Namespace, UserID: scope.UserID, Channel: scope.Channel, Audience: memory.Everything()}
	for _, page := range []struct {
		name  string
		query func(h history) session.MessageQuery
	}{
		{"the newest", func(history) session.MessageQuery { return session.MessageQuery{NewestFirst: true} }},
		{"from the middle", func(h history) session.MessageQuery { return session.MessageQuery{Start: int64(h.messages / 2)} }},
		{"the newest of an agent", func(history) session.MessageQuery {
			return session.MessageQuery{NewestFirst: true, AgentID: &scope.AgentID}
		}},
		{"of an agent, from the middle", func(h history) session.MessageQuery {
			return session.MessageQuery{Start: int64(h.messages / 2), AgentID: &scope.AgentID}
		}},
	} {
		b.Run(benchName(page.name), func(b *testing.B) {
			list := func(s *sidecar.Sidecar, h history) side {
				query := page.query(h)
				query.Limit = 20
				return func(int) {
					found, err := s.Sessions.Store.Messages(b.Context(), viewer, scope.SessionID, query)
					if err != nil || len(found.Messages) != query.Limit || found.Total == 0 {
						b.Fatal(len(found.Messages), found.Total, err)
					}
				}
			}
			compare(b, "ListMessages, "+page.name+", 1,000,000 / 1,000", 1.5, list(million, longHistory), list(thousand, shortHistory))
		})
	}
}

// BenchmarkGetContext compares the window of a session of a million messages with that of one of a thousand.
func BenchmarkGetContext(b *testing.B) {
	scope := historyScope()
	viewer := session.Viewer{Namespace: scope.Namespace, UserID: scope.UserID, Channel: scope.Channel, Audience: memory.Everything()}
	get := func(h history) side {
		s := startOnHistory(b, h.dir(b))
		request := session.ContextRequest{
			Scope: scope, Viewer: viewer, Limits: session.Limits{MaxMessages: 10, MaxTurns: 5, MaxRunes: 4000},
		}
		return func(int) {
			c := s.Sessions.Context(b.Context(), request)
			if len(c.Messages) < 9 || c.Summary == nil || c.Dropped < int64(h.messages-10) || len(c.Degraded) > 0 {
				b.Fatalf("%d messages, %d dropped, degraded: %v", len(c.Messages), c.Dropped, c.Degraded)
			}
		}
	}
	compare(b, "GetContext, 1,000,000 / 1,000", 1.5, get(longHistory), get(shortHistory))
}

// BenchmarkAppendMessages compares the latency of adding a turn to a session of a million messages with one of a thousand. The background
// work on the messages, considerations included, runs concurrently.
func BenchmarkAppendMessages(b *testing.B) {
	// Copies, because the benchmark changes them.
	grown := func(h history) *sidecar.Sidecar {
		dir := b.TempDir()
		if err := os.CopyFS(dir, os.DirFS(h.dir(b))); err != nil {
			b.Fatal(err)
		}
		return startOnHistory(b, dir)
	}
	add := func(s *sidecar.Sidecar) side {
		scope := historyScope()
		return func(n int) {
			now := time.Now()
			appended, err := s.Sessions.Append(b.Context(), session.AppendRequest{
				Scope: scope, Audience: memory.Everything(), Messages: []memory.Message{
					{Role: memory.RoleUser, Speaker: scope.UserID, Content: sentenceOf(longHistory.messages + 2*n).String(), Time: now},
					{Role: memory.RoleAssistant, AgentID: scope.AgentID, Content: sentenceOf(longHistory.messages + 2*n + 1).String(), Time: now},
				},
			})
			if err != nil || appended.Added != 2 {
				b.Fatal(appended.Added, err)
			}
		}
	}
	compare(b, "AppendMessages, 1,000,000 / 1,000", 1.5, add(grown(longHistory)), add(grown(shortHistory)))
}
