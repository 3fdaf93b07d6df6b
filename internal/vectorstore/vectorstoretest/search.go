package vectorstoretest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/vectorstore"
)

func searchTests() []test {
	return []test{
		{"SearchSeesWrites", testSearchSeesWrites},
		{"Similarity", testSimilarity},
		{"SimilarityBounds", testSimilarityBounds},
		{"Chunks", testChunks},
		{"Fingerprints", testFingerprints},
		{"WithoutContent", testWithoutContent},
		{"Keywords", testKeywords},
		{"Texts", testTexts},
		{"SearchLimits", testSearchLimits},
		{"SearchCancelled", testSearchCancelled},
	}
}

// testSearchSeesWrites: A search that starts after a write finds it, whether the user's index was loaded or not.
func testSearchSeesWrites(s *suite) {
	warmed := map[bool]string{false: "cold", true: "warm"}
	for i, warm := range []bool{false, true} {
		user := []memory.User{ann, ben}[i]
		check := func(what, query string, vector []float32, want ...string) {
			s.Helper()
			s.is(warmed[warm]+": "+what+": keyword", idsOf(s.byKeyword(user, everything(), query)), want...)
			hits := s.byVector(user, everything(), vector...)
			near := slices.DeleteFunc(hits, func(h vectorstore.Hit) bool { return h.Score < 0.5 })
			s.is(warmed[warm]+": "+what+": vector", idsOf(near), want...)
			s.snapshot(user)
		}
		x, y, z := []float32{1, 0, 0}, []float32{0, 1, 0}, []float32{0, 0, 1}
		if warm {
			s.warm(user)
		}
		tea := s.add(user, s.memory("likes green tea"), x...)
		check("added", "tea", x, tea.ID)
		cello := s.add(user, s.memory("plays the cello"), y...)
		check("added another", "cello", y, cello.ID)
		check("the first", "tea", x, tea.ID)

		_, err := s.store.Update(s.Context(), user, tea.ID, memory.Everything(), vectorstore.Patch{
			Text: new("has a dog"), Language: new("en"), Embedding: embedding(z), At: t0,
		})
		if err != nil {
			s.Fatal(err)
		}
		check("updated, old text", "tea", x)
		check("updated, new text", "dog", z, tea.ID)
		check("updated, the other", "cello", y, cello.ID)

		s.remove(user, tea.ID)
		check("deleted", "dog", z)
		check("deleted, the other", "cello", y, cello.ID)

		if n, err := s.store.Forget(s.Context(), user); n != 1 || err != nil {
			s.Errorf("forgot %d, %v", n, err)
		}
		check("forgotten", "cello", y)
	}
}

func testSimilarity(s *suite) {
	s.add(ann, s.memory("the same, longer"), 5, 0, 0)
	s.add(ann, s.memory("at an angle of 60 degrees"), 0.5, float32(math.Sqrt(3)/2), 0)
	s.add(ann, s.memory("orthogonal"), 0, 0, 0.001)
	s.add(ann, s.memory("opposite"), -2, 0, 0)
	var texts []string
	for i, h := range s.byVector(ann, everything(), 0.3, 0, 0) {
		texts = append(texts, h.Memory.Text)
		if want := []float64{1, 0.5, 0, -1}[i]; math.Abs(h.Score-want) > 1e-6 {
			s.Errorf("%q: %v, want %v", h.Memory.Text, h.Score, want)
		}
	}
	if got := fmt.Sprint(texts); got != "[the same, longer at an angle of 60 degrees orthogonal opposite]" {
		s.Errorf("in the order %q", texts)
	}
}

// testSimilarityBounds: Similarities are in [-1, 1] despite rounding.
func testSimilarityBounds(s *suite) {
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // deterministic
	var vectors [][]float32
	for i := range 40 {
		v := []float32{random.Float32(), random.Float32(), random.Float32()}
		vectors = append(vectors, v)
		s.add(ann, s.memory(fmt.Sprint("number ", i)), v...)
	}
	for _, v := range vectors {
		s.byVector(ann, everything(), v...) // checks the bounds
		s.byVector(ann, everything(), -v[0], -v[1], -7*v[2])
		s.byVector(ann, everything(), -v[0], -v[1], -v[2])
	}
}

func testChunks(s *suite) {
	for i, warm := range []bool{false, true} {
		user := []memory.User{ann, ben}[i]
		if warm {
			s.warm(user)
		}
		long := s.entry(s.memory("a long text about tea and a cello"))
		long.Embedding = embedding([]float32{0, 1, 0}, []float32{1, 0, 0}, []float32{0, 1, 1})
		s.apply(user, long)
		short := s.add(user, s.memory("short"), 1, 1, 0)
		hits := s.byVector(user, everything(), 1, 0, 0)
		if len(hits) != 2 || hits[0].Memory.ID != long.Memory.ID || hits[0].Score < 0.999 || hits[1].Memory.ID != short.ID {
			s.Errorf("the best chunk counts once: %+v", hits)
		}
		_, err := s.store.Update(s.Context(), user, long.Memory.ID, memory.Everything(), vectorstore.Patch{
			Text: new("now short"), Language: new("en"), Embedding: embedding([]float32{0, 0, 1}), At: t0,
		})
		if err != nil {
			s.Fatal(err)
		}
		for _, h := range s.byVector(user, everything(), 1, 0, 0) {
			if h.Memory.ID == long.Memory.ID && h.Score > 0.001 {
				s.Errorf("a chunk of the old text is still found: %+v", h)
			}
		}
		s.remove(user, long.Memory.ID)
		s.is("search", idsOf(s.byVector(user, everything(), 1, 0, 0)), short.ID)
	}
}

// testFingerprints: Vectors of two models are never compared.
func testFingerprints(s *suite) {
	for i, warm := range []bool{false, true} {
		user := []memory.User{ann, ben}[i]
		if warm {
			s.warm(user)
		}
		own := s.add(user, s.memory("likes green tea"), 1, 0, 0)
		foreign := s.entry(s.memory("plays the cello"))
		foreign.Embedding = vectorstore.Embedding{Fingerprint: "other/model/3", Chunks: [][]float32{{1, 0, 0}}}
		larger := s.entry(s.memory("has a dog"))
		larger.Embedding = vectorstore.Embedding{Fingerprint: "other/model/5", Chunks: [][]float32{{1, 0, 0, 0, 0}}}
		s.apply(user, foreign, larger)
		s.is("search", idsOf(s.byVector(user, everything(), 1, 0, 0)), own.ID)
		s.is("keyword", idsOf(s.byKeyword(user, everything(), "tea cello dog")), own.ID, foreign.Memory.ID, larger.Memory.ID)
		// A store may return an error for a fingerprint that it does not search. It must not return memories with other fingerprints.
		hits, err := s.store.SearchVector(s.Context(), user, "third/model/3", []float32{1, 0, 0}, everything(), 10)
		if len(hits) > 0 {
			s.Errorf("with vectors of a third model: %+v, %v", hits, err)
		}
	}
}

// testWithoutContent: Memories without a vector, or with a zero vector, are found only by keywords.
func testWithoutContent(s *suite) {
	for i, warm := range []bool{false, true} {
		user := []memory.User{ann, ben}[i]
		if warm {
			s.warm(user)
		}
		s.is("of nothing", idsOf(s.byVector(user, everything(), 1, 0, 0)))
		s.is("of nothing", idsOf(s.byKeyword(user, everything(), "tea")))
		zero := s.add(user, s.memory("likes green tea"), 0, 0, 0)
		none := s.add(user, s.memory("likes black tea"))
		s.is("vector, when none has one", idsOf(s.byVector(user, everything(), 1, 0, 0)))
		partly := s.entry(s.memory("likes tea and cake"))
		partly.Embedding = embedding([]float32{0, 0, 0}, []float32{1, 0, 0})
		s.apply(user, partly)
		all := []string{zero.ID, none.ID, partly.Memory.ID}
		s.is("vector", idsOf(s.byVector(user, everything(), 1, 0, 0)), partly.Memory.ID)
		s.is("keyword", idsOf(s.byKeyword(user, everything(), "tea")), all...)
		s.is("a query without content", idsOf(s.byVector(user, everything(), 0, 0, 0)))
		for _, query := range []string{"", "  ", "?!。", "🍵"} {
			if hits := s.byKeyword(user, everything(), query); len(hits) != 0 {
				s.Errorf("%q found %d", query, len(hits))
			}
		}
		for i, id := range all { // deleting a memory without vectors must not delete those with vectors
			s.remove(user, id)
			s.is("keyword", idsOf(s.byKeyword(user, everything(), "tea")), all[i+1:]...)
			if i < 2 {
				s.is("vector", idsOf(s.byVector(user, everything(), 1, 0, 0)), partly.Memory.ID)
			}
		}
	}
}

func testKeywords(s *suite) {
	both := s.add(ann, s.memory("plays the cello and the piano"), 1, 0, 0)
	one := s.add(ann, s.memory("plays the piano every evening"), 1, 0, 0)
	for _, text := range []string{"likes green tea", "works in Berlin", "has a dog"} {
		s.add(ann, s.memory(text), 1, 0, 0)
	}
	hits := s.byKeyword(ann, everything(), "cello piano")
	if len(hits) != 2 || hits[0].Memory.ID != both.ID || hits[1].Memory.ID != one.ID || hits[0].Score <= hits[1].Score {
		s.Errorf("found %+v", hits)
	}
	// The score is absolute: it does not depend on other hits, and words that no memory has lower it.
	alone := s.byKeyword(ann, everything(), "cello")[0].Score
	lacking := s.byKeyword(ann, everything(), "cello zeppelin")[0].Score
	if alone <= hits[1].Score || lacking >= alone || lacking <= 0 {
		s.Errorf("with all terms %v, with one of two %v, with a term of no memory %v", alone, hits[1].Score, lacking)
	}
}

func testTexts(s *suite) {
	for text, query := range map[string]string{
		"用户喜欢在周末去图书馆看书":                             "图书馆",
		"用户的生日是5月12日":                               "生日",
		"The user's sister lives in São Paulo":      "sao paulo",
		"用户在 Google 工作，写 Go 语言":                     "google",
		"ユーザーは寿司が好きです":                              "寿司",
		"사용자는 김치를 좋아한다":                             "김치",
		"Пользователь любит кофе":                   "кофе",
		"المستخدم يحب القهوة":                       "القهوة",
		"🎂🎉 birthday 🎈":                             "birthday",
		"zero\u200bwidth and \ufeff marks":          "marks",
		"e\u0301clair":                              "éclair",
		"\"quotes\" 'n' \\slashes\\ % _ ; --":       "slashes",
		"<script>alert(1)</script>":                 "alert",
		"x" + strings.Repeat(" 长长的文本", 500) + " 尾巴": "尾巴",
	} {
		m := s.add(ann, s.memory(text), 1, 0, 0)
		if got := s.get(ann, m.ID).Text; got != text {
			s.Errorf("stored %q, want %q", got, text)
		}
		for _, h := range [][]vectorstore.Hit{s.byKeyword(ann, everything(), query), s.byKeyword(ann, everything(), text)} {
			if !slices.Contains(idsOf(h), m.ID) {
				s.Errorf("%q does not find %q", query, text)
			}
		}
	}
	// A text without words is stored, read and deleted like any other.
	for _, text := range []string{"🍵", "…", "🏳️‍🌈👨‍👩‍👧"} {
		m := s.add(ann, s.memory(text), 1, 0, 0)
		s.byKeyword(ann, everything(), text)
		if got := s.get(ann, m.ID).Text; got != text {
			s.Errorf("stored %q, want %q", got, text)
		}
		s.remove(ann, m.ID)
	}
}

func testSearchLimits(s *suite) {
	const count = 5
	for i := range count {
		s.add(ann, s.memory(fmt.Sprint("likes tea number ", i)), 1, float32(i), 0)
	}
	full := s.byVector(ann, everything(), 1, 0, 0)
	for _, limit := range []int{0, 1, 2, count, count + 1, math.MaxInt} {
		byVector, err1 := s.store.SearchVector(s.Context(), ann, Fingerprint, []float32{1, 0, 0}, everything(), limit)
		byKeyword, err2 := s.store.SearchKeyword(s.Context(), ann, "tea", everything(), limit)
		if err := errors.Join(err1, err2); err != nil {
			s.Fatal(err)
		}
		want := min(limit, count)
		if len(byVector) != want || len(byKeyword) != want {
			s.Errorf("limit %d: %d by vector, %d by keyword", limit, len(byVector), len(byKeyword))
		}
		for i := range byVector {
			if byVector[i].Memory.ID != full[i].Memory.ID {
				s.Errorf("the hits of limit %d are not the best", limit)
			}
		}
	}
}

func testSearchCancelled(s *suite) {
	s.add(ann, s.memory("likes green tea"), 1, 0, 0)
	ctx, cancel := context.WithCancel(s.Context())
	cancel()
	// A cancelled search may be answered from memory or fail. It must not affect the next search.
	for range 3 {
		if _, err := s.store.SearchVector(ctx, ann, Fingerprint, []float32{1, 0, 0}, everything(), 10); err != nil && !errors.Is(err, context.Canceled) {
			s.Errorf("by vector: %v", err)
		}
		if _, err := s.store.SearchKeyword(ctx, ann, "tea", everything(), 10); err != nil && !errors.Is(err, context.Canceled) {
			s.Errorf("by keyword: %v", err)
		}
		if n := len(s.byVector(ann, everything(), 1, 0, 0)) + len(s.byKeyword(ann, everything(), "tea")); n != 2 {
			s.Errorf("the next searches find %d", n)
		}
	}
}
