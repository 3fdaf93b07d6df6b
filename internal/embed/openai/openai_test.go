package openai_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/memsidecar/memsidecar/internal/embed"
	"github.com/memsidecar/memsidecar/internal/embed/openai"
	"github.com/memsidecar/memsidecar/internal/provider"
	"github.com/memsidecar/memsidecar/internal/provider/providertest"
	"github.com/memsidecar/memsidecar/internal/secret"
)

const key = secret.Value("sk-never-shown")

func embedder(t *testing.T, endpoint string) *openai.Embedder {
	t.Helper()
	target, err := provider.Resolve("openai", "embedding-3", endpoint+"/v1", nil)
	if err != nil {
		t.Fatal(err)
	}
	return openai.New(target, key, 2)
}

var contract = providertest.Adapter[*openai.Embedder]{
	Name: "openai/embedding-3", Key: string(key), Open: embedder,
	Call: func(ctx context.Context, e *openai.Embedder, limit time.Duration) error {
		asked := embed.Embedder(e)
		if limit > 0 {
			asked = embed.WithTimeout(e, limit)
		}
		_, err := asked.Embed(ctx, embed.ForQuery, slices.Repeat([]string{"a"}, 20))
		return err
	},
}

// server is an endpoint that may accept dimensions and a maximum number of texts. It refuses the rest as real ones do.
type server struct {
	dimensions int // of its model
	matryoshka bool
	batch      int
}

type request struct {
	Model          string
	Input          []string
	Dimensions     int
	EncodingFormat string `json:"encoding_format"`
}

// ServeHTTP returns for each text "n…" the vector (n, 1, 1, …), in reverse order.
func (s server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var sent request
	dimensions := s.dimensions
	switch err := json.NewDecoder(r.Body).Decode(&sent); {
	case err != nil:
		providertest.JSON(400, `{}`)(w, r)
		return
	case len(sent.Input) > s.batch:
		providertest.JSON(400, `{"error":{"message":"<400> InternalError.Algo.InvalidParameter: Value error, batch size is invalid, it `+
			`should not be larger than 10."}}`)(w, r)
		return
	case sent.Dimensions > 0 && !s.matryoshka:
		providertest.JSON(400, `{"object":"error","message":"Model \"m\" does not support matryoshka representation, changing output `+
			`dimensions will lead to poor results.","code":400}`)(w, r)
		return
	case sent.Dimensions > 0:
		dimensions = sent.Dimensions
	}
	data := []any{}
	for i, text := range sent.Input {
		values := make([]float64, dimensions)
		for j := range values {
			values[j] = 1
		}
		if _, err := fmt.Sscan(text, &values[0]); err != nil {
			values[0] = 1
		}
		data = append(data, map[string]any{"object": "embedding", "index": i, "embedding": values})
	}
	slices.Reverse(data)
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{
		"object": "list", "data": data, "model": "m", "usage": map[string]any{"prompt_tokens": len(sent.Input), "total_tokens": len(sent.Input)},
	})
}

// check embeds so many texts and checks their vectors.
func check(t *testing.T, e embed.Embedder, count int) {
	t.Helper()
	texts := make([]string, count)
	for i := range texts {
		texts[i] = fmt.Sprintf("%d texts", i+1)
	}
	texts[count/2] = " "
	vectors, err := e.Embed(t.Context(), embed.ForDocument, texts)
	if err != nil || len(vectors) != count {
		t.Fatal(len(vectors), err)
	}
	for i, v := range vectors {
		length := math.Hypot(float64(v[0]), float64(v[1]))
		if i == count/2 && length == 0 {
			continue
		}
		if len(v) != 2 || math.Abs(length-1) > 1e-6 || math.Abs(float64(v[0]/v[1])-float64(i+1)) > 1e-3 {
			t.Errorf("text %d has the vector %v", i, v)
		}
	}
}

// TestEmbedAdaptsToTheEndpoint: The client adapts its requests to what the endpoint refuses, and keeps them so.
func TestEmbedAdaptsToTheEndpoint(t *testing.T) {
	for name, test := range map[string]struct {
		server server
		// The sizes of the batches of the first and the second call with 70 texts; negative with dimensions in the request.
		first, second []int
	}{
		"all taken":     {server{4, true, 2048}, []int{-32, -32, -5}, []int{-32, -32, -5}},
		"no dimensions": {server{4, false, 2048}, []int{-32, 32, 32, 5}, []int{32, 32, 5}},
		"small batches": {server{4, true, 10}, []int{-32, -10, -10, -10, -2, -10, -10, -10, -2, -5}, []int{-10, -10, -10, -2, -10, -10, -10, -2, -5}},
		"neither":       {server{4, false, 10}, []int{-32, -10, 10, 10, 10, 2, 10, 10, 10, 2, 5}, []int{10, 10, 10, 2, 10, 10, 10, 2, 5}},
	} {
		t.Run(name, func(t *testing.T) {
			s := providertest.Play(t, test.server.ServeHTTP)
			e := embedder(t, s.URL)
			for _, want := range [][]int{test.first, test.second} {
				before := len(s.Requests())
				check(t, e, 70)
				var got []int
				for _, r := range s.Requests()[before:] {
					var sent request
					if err := json.Unmarshal([]byte(r.Body), &sent); err != nil {
						t.Fatal(err)
					}
					if r.Path != "/v1/embeddings" || r.Header.Get("Authorization") != "Bearer "+key.Reveal() ||
						sent.Model != "embedding-3" || sent.EncodingFormat != "float" {
						t.Errorf("sent to %s with %v: %s", r.Path, r.Header, r.Body)
					}
					size := len(sent.Input)
					if sent.Dimensions == 2 {
						size = -size
					}
					got = append(got, size)
				}
				if !slices.Equal(got, want) {
					t.Errorf("sent batches of %v, want %v", got, want)
				}
			}
		})
	}
}

// TestFingerprintStays: Adapting to the endpoint does not change the fingerprint.
func TestFingerprintStays(t *testing.T) {
	e := embedder(t, providertest.Play(t, server{4, false, 10}.ServeHTTP).URL)
	before := e.Fingerprint()
	check(t, e, 70)
	if e.Fingerprint() != before || before.String() != "openai/embedding-3@2#1" {
		t.Errorf("changed from %s to %s", before, e.Fingerprint())
	}
}

func TestConcurrent(t *testing.T) {
	e := embedder(t, providertest.Play(t, server{4, false, 10}.ServeHTTP).URL)
	var callers sync.WaitGroup
	for range 8 {
		callers.Go(func() { check(t, e, 40) })
	}
	callers.Wait()
}

func TestTokens(t *testing.T) {
	var tokens int64
	e := embed.WithObserver(embedder(t, providertest.Play(t, server{4, true, 100}.ServeHTTP).URL), func(ctx context.Context, _ time.Time, _ error) {
		tokens = embed.Tokens(ctx)
	})
	check(t, e, 70)
	if tokens != 69 {
		t.Errorf("%d tokens, want 69", tokens)
	}
}

func TestUnusableResponseIsPermanent(t *testing.T) {
	data := func(vectors ...string) string {
		return `{"object":"list","data":[` + strings.Join(vectors, ",") + `]}`
	}
	const good = `{"index":0,"embedding":[1,2]}`
	for name, test := range map[string]struct{ answer, want string }{
		"too short":          {data(good, `{"index":1,"embedding":[1]}`), "have 1 numbers, fewer than the 2"},
		"one missing":        {data(good), "1 vectors came back for 2 texts"},
		"one too many":       {data(good, `{"index":1,"embedding":[1,2]}`, `{"index":2,"embedding":[1,2]}`), "3 vectors came back for 2 texts"},
		"none":               {`{}`, "0 vectors came back for 2 texts"},
		"the same twice":     {data(good, good), "vector of text 1 is empty"},
		"index out of reach": {data(good, `{"index":5,"embedding":[1,2]}`), "vector of text 1 is empty"},
		"index below":        {data(good, `{"index":-1,"embedding":[1,2]}`), "vector of text 1 is empty"},
		"zeros":              {data(good, `{"index":1,"embedding":[0,0,1]}`), "no direction"},
		"null":               {data(good, `{"index":1,"embedding":null}`), "vector of text 1 is empty"},
		"NaN in base64":      {data(good, `{"index":1,"embedding":"AADAfwAAgD8="}`), "no direction"},
		"too large":          {data(good, `{"index":1,"embedding":[1e39,1]}`), "no direction"},
	} {
		t.Run(name, func(t *testing.T) {
			s := providertest.Play(t, providertest.JSON(200, test.answer))
			vectors, err := embedder(t, s.URL).Embed(t.Context(), embed.ForDocument, []string{"a", "b"})
			if err == nil || vectors != nil || provider.IsFailure(err) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v, %v; want %q", vectors, err, test.want)
			}
			if len(s.Requests()) != 1 {
				t.Errorf("%d calls", len(s.Requests()))
			}
		})
	}
}

func TestFailures(t *testing.T) {
	contract.Failures(t, map[string]providertest.Failure{
		"rate limit":         {Answer: providertest.JSON(429, `{}`), Passes: true},
		"server error":       {Answer: providertest.JSON(500, `{}`), Passes: true},
		"bad request":        {Answer: providertest.JSON(400, `{}`)},
		"dimensions, always": {Answer: providertest.JSON(400, `{"error":{"message":"batch dimensions"}}`), Asked: 3},
		"broken JSON":        {Answer: providertest.JSON(200, `{"data":[`), Passes: true},
		"a page":             {Answer: func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) }, Passes: true},
		"connection lost":    {Answer: providertest.Disconnect, Passes: true},
	})
}

func TestHang(t *testing.T) { contract.Hang(t) }

func TestKeyIsNotPrinted(t *testing.T) { contract.HidesKey(t) }

// TestLive calls the real API.
func TestLive(t *testing.T) {
	live := os.Getenv("OPENAI_API_KEY")
	if live == "" {
		t.Skip("OPENAI_API_KEY is not set: the real OpenAI API is not called")
	}
	target, err := provider.Resolve("openai", "", "", func(p provider.Provider) string { return p.EmbeddingModel })
	if err != nil {
		t.Fatal(err)
	}
	e := embed.WithTimeout(openai.New(target, secret.Value(live), 768), time.Minute)
	vectors, err := e.Embed(t.Context(), embed.ForDocument, []string{"用户对花生过敏。", "用户住在杭州。", "他有什么不能吃的东西？"})
	if err != nil {
		t.Fatal(err)
	}
	var near, far float32
	for i, x := range vectors[2] {
		near += x * vectors[0][i]
		far += x * vectors[1][i]
	}
	if len(vectors[0]) != 768 || near <= far {
		t.Errorf("%d numbers, similarities %v and %v", len(vectors[0]), near, far)
	}
}
