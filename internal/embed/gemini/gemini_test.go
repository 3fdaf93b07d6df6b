package gemini_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/memsidecar/memsidecar/internal/embed"
	"github.com/memsidecar/memsidecar/internal/embed/gemini"
	"github.com/memsidecar/memsidecar/internal/provider"
	"github.com/memsidecar/memsidecar/internal/provider/providertest"
	"github.com/memsidecar/memsidecar/internal/secret"
)

const key = secret.Value("AIza-never-shown")

func embedder(t *testing.T, endpoint string) *gemini.Embedder {
	t.Helper()
	target, err := provider.Resolve("google", "gemini-embedding-001", endpoint, nil)
	if err != nil {
		t.Fatal(err)
	}
	e, err := gemini.New(target, key, 2)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

var contract = providertest.Adapter[*gemini.Embedder]{
	Name: "gemini/gemini-embedding-001", Key: string(key), Open: embedder,
	Call: func(ctx context.Context, e *gemini.Embedder, limit time.Duration) error {
		asked := embed.Embedder(e)
		if limit > 0 {
			asked = embed.WithTimeout(e, limit)
		}
		_, err := asked.Embed(ctx, embed.ForQuery, []string{"a"})
		return err
	},
}

// request is the body of batchEmbedContents.
type request struct {
	Model    string
	Requests []struct {
		Model    string
		TaskType int // 1 RETRIEVAL_QUERY, 2 RETRIEVAL_DOCUMENT
		Content  struct{ Parts []struct{ Text string } }
	}
}

// echoing returns for each text "n…" the vector (n, 1, 1, …), which shows whether the order was kept.
func echoing(dimensions int) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var sent request
		if err := json.NewDecoder(r.Body).Decode(&sent); err != nil || len(sent.Requests) > 100 {
			providertest.JSON(400, `{"error":{"message":"at most 100 requests can be in one batch"}}`)(w, r)
			return
		}
		var answer struct {
			Embeddings []map[string]any `json:"embeddings"`
		}
		for _, one := range sent.Requests {
			values := make([]float64, dimensions)
			for i := range values {
				values[i] = 1
			}
			if _, err := fmt.Sscan(one.Content.Parts[0].Text, &values[0]); err != nil {
				values[0] = 1
			}
			answer.Embeddings = append(answer.Embeddings, map[string]any{"values": values})
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(answer)
	}
}

func TestEmbed(t *testing.T) {
	s := providertest.Play(t, echoing(4))
	e := embedder(t, s.URL)
	if got := e.Fingerprint().String(); got != "gemini/gemini-embedding-001@2#1" {
		t.Errorf("the fingerprint is %s", got)
	}
	texts := make([]string, 250)
	for i := range texts {
		texts[i] = fmt.Sprintf("%d texts\xff", i+1)
	}
	texts[7], texts[249] = " \n", ""
	for purpose, task := range map[embed.Purpose]int{embed.ForQuery: 1, embed.ForDocument: 2} {
		before := len(s.Requests())
		vectors, err := e.Embed(t.Context(), purpose, texts)
		if err != nil || len(vectors) != len(texts) {
			t.Fatal(len(vectors), err)
		}
		for i, v := range vectors {
			length := math.Hypot(float64(v[0]), float64(v[1]))
			if i == 7 || i == 249 {
				if length != 0 {
					t.Errorf("a text without content has the vector %v", v)
				}
				continue
			}
			if len(v) != 2 || math.Abs(length-1) > 1e-6 || math.Abs(float64(v[0]/v[1])-float64(i+1)) > 1e-3 {
				t.Errorf("text %d has the vector %v", i, v)
			}
		}
		requests := s.Requests()[before:]
		if len(requests) != 3 {
			t.Errorf("asked %d times for 250 texts", len(requests))
		}
		for _, r := range requests {
			var sent request
			if err := json.Unmarshal([]byte(r.Body), &sent); err != nil {
				t.Fatal(err)
			}
			if r.Path != "/v1beta/models/gemini-embedding-001:batchEmbedContents" || r.Header.Get("X-Goog-Api-Key") != key.Reveal() ||
				strings.Contains(r.Query, "AIza") || sent.Model != "models/gemini-embedding-001" {
				t.Errorf("sent to %s?%s with %v", r.Path, r.Query, r.Header)
			}
			for _, one := range sent.Requests {
				if one.TaskType != task || one.Model != sent.Model || !strings.HasSuffix(one.Content.Parts[0].Text, " texts\uFFFD") {
					t.Fatalf("sent %+v", one)
				}
			}
		}
	}
}

func TestNothingToEmbed(t *testing.T) {
	e := embedder(t, "http://127.0.0.1:1")
	for _, texts := range [][]string{nil, {""}, {" ", "\n"}} {
		vectors, err := e.Embed(t.Context(), embed.ForDocument, texts)
		if err != nil || len(vectors) != len(texts) {
			t.Errorf("%q: %v, %v", texts, vectors, err)
		}
	}
}

// TestUnusableResponseIsPermanent: An unusable response is a permanent error.
func TestUnusableResponseIsPermanent(t *testing.T) {
	for name, test := range map[string]struct{ answer, want string }{
		"too short":    {`{"embeddings":[{"values":[1]},{"values":[1]}]}`, "have 1 numbers, fewer than the 2"},
		"one missing":  {`{"embeddings":[{"values":[1,2]}]}`, "1 vectors came back for 2 texts"},
		"one too many": {`{"embeddings":[{"values":[1,2]},{"values":[1,2]},{"values":[1,2]}]}`, "3 vectors came back for 2 texts"},
		"none":         {`{}`, "0 vectors came back for 2 texts"},
		"empty":        {`{"embeddings":[{"values":[1,2]},{}]}`, "vector of text 1 is empty"},
		"null":         {`{"embeddings":[{"values":[1,2]},{"values":null}]}`, "vector of text 1 is empty"},
		"zeros":        {`{"embeddings":[{"values":[1,2]},{"values":[0,0,1]}]}`, "no direction"},
		"NaN":          {`{"embeddings":[{"values":[1,2]},{"values":["NaN",1]}]}`, "no direction"},
		"infinite":     {`{"embeddings":[{"values":[1,2]},{"values":["-Infinity",1]}]}`, "no direction"},
	} {
		t.Run(name, func(t *testing.T) {
			vectors, err := embedder(t, providertest.Play(t, providertest.JSON(200, test.answer)).URL).Embed(t.Context(), embed.ForDocument, []string{"a", "b"})
			if err == nil || vectors != nil || provider.IsFailure(err) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v, %v; want %q", vectors, err, test.want)
			}
			short, ok := errors.AsType[*embed.ShortError](err)
			if ok != (name == "too short") || ok && short.Numbers != 1 {
				t.Errorf("the short response is a transient error: %v", ok)
			}
		})
	}
}

func TestFailures(t *testing.T) {
	contract.Failures(t, map[string]providertest.Failure{
		"rate limit": {
			Answer: providertest.JSON(429, `{"error":{"message":"no","details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo",`+
				`"retryDelay":"7s"}]}}`),
			Passes: true, After: 7 * time.Second,
		},
		"unavailable":     {Answer: providertest.JSON(503, `{}`), Passes: true},
		"bad request":     {Answer: providertest.JSON(400, `{}`)},
		"broken JSON":     {Answer: providertest.JSON(200, `{"embeddings":[{"values":[1,`), Passes: true},
		"text for number": {Answer: providertest.JSON(200, `{"embeddings":[{"values":["x"]}]}`), Passes: true},
		"connection lost": {Answer: providertest.Disconnect, Passes: true},
	})
}

func TestHang(t *testing.T) { contract.Hang(t) }

func TestKeyIsNotPrinted(t *testing.T) { contract.HidesKey(t) }

// TestLive calls the real API.
func TestLive(t *testing.T) {
	live := os.Getenv("GEMINI_API_KEY")
	if live == "" {
		t.Skip("GEMINI_API_KEY is not set: the real Gemini API is not called")
	}
	target, err := provider.Resolve("gemini", "", "", func(p provider.Provider) string { return p.EmbeddingModel })
	if err != nil {
		t.Fatal(err)
	}
	e, err := gemini.New(target, secret.Value(live), 768)
	if err != nil {
		t.Fatal(err)
	}
	wantNearer(t, embed.WithTimeout(e, time.Minute))
}

// wantNearer: a relevant document is nearer to a query than another.
func wantNearer(t *testing.T, e embed.Embedder) {
	t.Helper()
	documents, err := e.Embed(t.Context(), embed.ForDocument, []string{"用户对花生过敏。", "用户住在杭州。"})
	if err != nil {
		t.Fatal(err)
	}
	query, err := e.Embed(t.Context(), embed.ForQuery, []string{"他有什么不能吃的东西？"})
	if err != nil {
		t.Fatal(err)
	}
	var near, far float32
	for i, x := range query[0] {
		near += x * documents[0][i]
		far += x * documents[1][i]
	}
	if len(query[0]) != 768 || near <= far {
		t.Errorf("%d numbers, similarities %v and %v", len(query[0]), near, far)
	}
}
