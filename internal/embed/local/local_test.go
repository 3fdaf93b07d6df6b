package local_test

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/memsidecar/memsidecar/internal/embed"
	"github.com/memsidecar/memsidecar/internal/embed/local"
)

func newEmbedder(t testing.TB, dimensions int) *local.Embedder {
	t.Helper()
	e, err := local.New(dimensions)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func embedAll(t testing.TB, e embed.Embedder, p embed.Purpose, texts []string) [][]float32 {
	t.Helper()
	vectors, err := e.Embed(t.Context(), p, texts)
	if err != nil || len(vectors) != len(texts) {
		t.Fatalf("%d vectors for %d texts, %v", len(vectors), len(texts), err)
	}
	return vectors
}

// dot is the cosine similarity of two vectors of length 1.
func dot(a, b []float32) (sum float64) {
	for i := range a {
		sum += float64(a[i]) * float64(b[i])
	}
	return sum
}

func TestNewChecksTheRange(t *testing.T) {
	for _, dimensions := range []int{-1, 0, 63, 4097} {
		if _, err := local.New(dimensions); err == nil {
			t.Errorf("New(%d) succeeds", dimensions)
		}
	}
	for _, dimensions := range []int{local.MinDimensions, 100, local.DefaultDimensions, local.MaxDimensions} {
		e := newEmbedder(t, dimensions)
		if v := embedAll(t, e, embed.ForDocument, []string{"tea"})[0]; len(v) != dimensions || e.Fingerprint().Dimensions != dimensions {
			t.Errorf("%d dimensions give vectors of %d and the fingerprint %s", dimensions, len(v), e.Fingerprint())
		}
	}
}

func TestFingerprint(t *testing.T) {
	if got, want := newEmbedder(t, 256).Fingerprint().String(), "local/hashed-ngrams@256#1"; got != want {
		t.Errorf("the fingerprint is %s, want %s", got, want)
	}
}

// TestGolden fails when a vector changes. Users have stored such vectors: increase the version, then update the hashes.
func TestGolden(t *testing.T) {
	for _, c := range []struct {
		dimensions int
		text       string
		sha256     string // of the little-endian float32s, the first 8 bytes
	}{
		{256, "用户喜欢喝手冲咖啡，不喜欢喝奶茶。", "3c0aba1e9cf86c27"},
		{256, "The user's girlfriend is named Emily and her birthday is August 15.", "0e65f5484c9db557"},
		{256, "我在用Vue做frontend，2023年5月4日 ＡＢＣ１２３ café iPhone15 a.b@example.com C++", "6ef1a1b934489e74"},
		{256, "ユーザーはラーメンが好き 사용자는 서울에 살아요 Пользователь ผู้ใช้", "65d708bc97e1c4e3"},
		{64, "用户喜欢喝手冲咖啡，不喜欢喝奶茶。", "3cccf5c77ec6c99e"},
		{1000, "The user's girlfriend is named Emily and her birthday is August 15.", "5719a465065f214b"},
		{4096, strings.Repeat("the dog saw 42 猫 and ran; ", 200), "3b5d93b9c32a5021"},
		{256, "", "5f70bf18a0860070"},
	} {
		hash := sha256.New()
		if err := binary.Write(hash, binary.LittleEndian, embedAll(t, newEmbedder(t, c.dimensions), embed.ForDocument, []string{c.text})[0]); err != nil {
			t.Fatal(err)
		}
		if got := hex.EncodeToString(hash.Sum(nil)[:8]); got != c.sha256 {
			t.Errorf("the vector of %.60q at %d dimensions has the hash %s, want %s", c.text, c.dimensions, got, c.sha256)
		}
	}
}

func TestVectorsHaveLengthOne(t *testing.T) {
	e := newEmbedder(t, local.DefaultDimensions)
	for _, text := range []string{"a", "的", "用户", "我", "1", "The user likes tea", "用户喜欢茶", strings.Repeat("猫狗", 5000), strings.Repeat("x", 100000)} {
		v := embedAll(t, e, embed.ForDocument, []string{text})[0]
		if length := math.Sqrt(dot(v, v)); math.Abs(length-1) > 1e-6 {
			t.Errorf("the vector of %.20q has length %v", text, length)
		}
	}
}

func TestTextWithoutContentIsZero(t *testing.T) {
	e := newEmbedder(t, local.DefaultDimensions)
	for _, text := range []string{"", " \n", "。！？", "😀👍🏽", "\xff"} {
		if v := embedAll(t, e, embed.ForQuery, []string{text})[0]; slices.ContainsFunc(v, func(x float32) bool { return x != 0 }) {
			t.Errorf("the vector of %q is not zero", text)
		}
	}
}

func TestVectorDependsOnlyOnTheText(t *testing.T) {
	e := newEmbedder(t, local.DefaultDimensions)
	alone := embedAll(t, e, embed.ForDocument, []string{"用户喜欢用Vue"})[0]
	among := embedAll(t, e, embed.ForQuery, []string{"x", "用户喜欢用Vue", "y"})[1]
	if !slices.Equal(alone, among) {
		t.Error("the vector depends on the purpose or on the other texts")
	}
	spelled := embedAll(t, e, embed.ForQuery, []string{"用户喜欢用ＶＵＥ！"})[0]
	if s := dot(alone, spelled); math.Abs(s-1) > 1e-6 {
		t.Errorf("the similarity to a full-width spelling is %v", s)
	}
}

func TestRelatedTextsAreNearerThanUnrelated(t *testing.T) {
	e := newEmbedder(t, local.DefaultDimensions)
	for _, c := range []struct{ text, related, unrelated string }{
		{"用户喜欢喝咖啡", "用户每天喝一杯咖啡", "用户喜欢打篮球"},
		{"我的猫叫什么名字", "用户的猫叫豆豆", "用户的妈妈在北京"},
		{"用户对花生过敏", "吃花生会过敏吗", "用户过年回家"},
		{"用户住在北京", "北京天气怎么样", "用户住在三楼"},
		{"The user likes coffee", "Does he drink coffee in the morning?", "The user likes football"},
		{"The user runs every morning", "running", "The user reads every evening"},
		{"The user has an allergy", "what allergies do they have", "The user has a bicycle"},
		{"The user works with Kubernetes", "kubernets", "The user works with children"}, // misspelt
		{"我在用Vue做frontend", "前端用的是vue吗", "我在用锤子做桌子"},
		{"用户的生日是2023年5月4日", "2023-05-04", "用户的生日在冬天"},
	} {
		v := embedAll(t, e, embed.ForDocument, []string{c.text, c.related, c.unrelated})
		if near, far := dot(v[0], v[1]), dot(v[0], v[2]); near <= far {
			t.Errorf("%q: similarity %.3f to %q, %.3f to %q", c.text, near, c.related, far, c.unrelated)
		}
	}
}

func TestFunctionWordsCauseNoSimilarity(t *testing.T) {
	e := newEmbedder(t, 1024) // large enough that the features do not collide
	for a, b := range map[string]string{
		"用户喜欢喝茶":             "用户搬到了北京",
		"你还记得我是谁的朋友吗":        "他是在那个的时候就来了",
		"The user likes tea": "The user moved to Portland",
		"Where do I have to be with you and what is it about then, Peter": "She was the one who did it for all of them, as you have said",
	} {
		v := embedAll(t, e, embed.ForDocument, []string{a, b})
		if s := dot(v[0], v[1]); math.Abs(s) > 0.15 {
			t.Errorf("%q and %q have the similarity %.3f", a, b, s)
		}
	}
}

func TestEmbedHonoursItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := newEmbedder(t, 256).Embed(ctx, embed.ForDocument, []string{"tea"}); !errors.Is(err, context.Canceled) {
		t.Errorf("err = %v", err)
	}
}

func TestConcurrentUse(t *testing.T) {
	e := newEmbedder(t, local.DefaultDimensions)
	want := embedAll(t, e, embed.ForDocument, []string{"用户喜欢喝咖啡"})[0]
	var callers sync.WaitGroup
	for range 8 {
		callers.Go(func() {
			if got := embedAll(t, e, embed.ForQuery, []string{"The user", "用户喜欢喝咖啡"})[1]; !slices.Equal(got, want) {
				t.Error("a concurrent call gave another vector")
			}
		})
	}
	callers.Wait()
}

func BenchmarkEmbed(b *testing.B) {
	e := newEmbedder(b, local.DefaultDimensions)
	for name, text := range map[string]string{
		"zh60": "用户在2023年5月4日从上海搬到了杭州，现在在一家做电商的公司担任前端工程师，平时喜欢用Vue写项目，周末常去西湖边跑步。",
		"en16": "The user moved from Seattle to Portland in May 2023 and enjoys running with Vue developers.",
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := e.Embed(b.Context(), embed.ForDocument, []string{text}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
