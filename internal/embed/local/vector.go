package local

import (
	"math"

	"github.com/memsidecar/memsidecar/internal/lang/lexical"
)

// Weights of one occurrence of a feature, in hundredths. The weights of characters, pairs and trigrams are round numbers
// near the best of a coarse search over the statements and questions of recall_test.go, where the optimum is flat.
const (
	weightWord     = 100
	weightFunction = 8
	weightTrigram  = 35 // of a word's letters; shared by words of one root and by misspellings
	weightChar     = 70
	weightCharPair = 70
	weightFuncChar = 4

	commonShare = 40 // percent of these that a common word's features weigh
)

// The kinds of features: equal texts of two kinds are two features.
const (
	featureTerm byte = iota
	featureTrigram
)

// vector builds a signed feature hashing (Weinberger et al., "Feature Hashing for Large Scale Multitask Learning",
// 2009): each feature adds its weight, or takes it away, at one dimension; hash bits say where and which. The weight
// grows with the logarithm of the feature's frequency.
//
// Sums are of integers, and the only floating-point operations are a conversion, a product, a sum of products that is kept
// from being fused, a square root and a division, which IEEE 754 defines to the last bit: every machine yields the same.
func (e *Embedder) vector(text string) []float32 {
	vector := make([]float32, e.dimensions)
	tokens := lexical.Tokens(text)
	if len(tokens) == 0 {
		return vector
	}
	c := newCounter(len(tokens))
	for _, t := range tokens {
		c.token(t)
	}
	sums := make([]int64, e.dimensions)
	dimensions := uint64(e.dimensions) //nolint:gosec // New checked its range
	for _, f := range c.slots {
		if f.count == 0 {
			continue
		}
		weight := int64(f.weight) * sublinear(f.count)
		if f.hash&1 == 1 {
			weight = -weight
		}
		// The product's high half spreads the hash's upper 32 bits evenly over any number of dimensions.
		sums[(f.hash>>32)*dimensions>>32] += weight
	}
	return normalize(vector, sums)
}

// normalize fills the vector with sums scaled to length 1.
func normalize(vector []float32, sums []int64) []float32 {
	var square float64
	for _, s := range sums {
		square += float64(float64(s) * float64(s)) // the conversion keeps a compiler from fusing it with the sum
	}
	if square == 0 { // every feature met its opposite
		return vector
	}
	length := math.Sqrt(square)
	for i, s := range sums {
		vector[i] = float32(float64(s) / length)
	}
	return vector
}

// sublinear is 100·(1 + ln n), as Manning et al., "Introduction to Information Retrieval", section 6.4.1, weighs term
// frequencies; a table, since math.Log is not the same on every machine. It is flat from 20 on.
func sublinear(n uint32) int64 {
	table := [...]int64{0, 100, 169, 210, 239, 261, 279, 295, 308, 320, 330, 340, 348, 356, 364, 371, 377, 383, 389, 394, 400}
	return table[min(int(n), len(table)-1)]
}

// counter counts features: an open-addressing hash table that is filled and read once.
type counter struct {
	slots []feature
	used  int
}

type feature struct {
	hash   uint64
	weight uint32
	count  uint32
}

func newCounter(tokens int) *counter {
	size := 64
	for size < 3*tokens {
		size *= 2
	}
	return &counter{slots: make([]feature, size)}
}

// token counts the features of one token.
func (c *counter) token(t lexical.Token) {
	share := uint32(100)
	if isCommon(t.Term) {
		share = commonShare
	}
	c.add(hash(featureTerm, t.Term), termWeight(t)*share/100)
	if t.Kind == lexical.Word && !t.Function {
		c.trigrams(t.Surface, weightTrigram*share/100)
	}
}

func termWeight(t lexical.Token) uint32 {
	switch {
	case t.Kind == lexical.Char && t.Function:
		return weightFuncChar
	case t.Function:
		return weightFunction
	case t.Kind == lexical.Char:
		return weightChar
	case t.Kind == lexical.CharPair:
		return weightCharPair
	}
	return weightWord
}

// isCommon reports whether a term is in so many statements about people that sharing it says little. A vector has no inverse document
// frequency.
func isCommon(term string) bool {
	switch term {
	case "like", "love", "enjoy", "prefer", "want", "use", "name", "call", "go", "get", "make", "say", "think", "plan", "start",
		"often", "usual", "alway", "current", "recent", "now", "today", "time", "day", "week", "month", "year",
		"喜", "欢", "歡", "喜欢", "喜歡", "爱", "愛", "想", "叫", "说", "說", "去", "做", "用", "常", "每", "天", "每天", "经常", "經常",
		"最近", "现在", "現在", "目前", "正在", "已经", "已經", "打算", "觉得", "覺得", "名", "字", "名字", "上", "下", "人", "年", "月", "日":
		return true
	}
	return false
}

// trigrams counts a word's character 3-grams with its borders: ^do, dog, og$.
func (c *counter) trigrams(word string, weight uint32) {
	a, b := '^', '^'
	for i, r := range word {
		if i > 0 {
			c.add(hashRunes(a, b, r), weight)
		}
		a, b = b, r
	}
	c.add(hashRunes(a, b, '$'), weight)
}

func (c *counter) add(hash uint64, weight uint32) {
	if 2*c.used >= len(c.slots) {
		c.grow()
	}
	for i := c.place(hash); ; i = (i + 1) & (len(c.slots) - 1) {
		switch s := &c.slots[i]; {
		case s.count == 0:
			*s = feature{hash: hash, weight: weight, count: 1}
			c.used++
			return
		case s.hash == hash:
			s.weight = max(s.weight, weight) // 的 may be grammar here and content there
			s.count++
			return
		}
	}
}

// place uses bits that neither the dimension nor the sign comes from.
func (c *counter) place(hash uint64) int { return int(hash>>1) & (len(c.slots) - 1) }

func (c *counter) grow() {
	old := c.slots
	c.slots = make([]feature, 2*len(old))
	for _, f := range old {
		if f.count == 0 {
			continue
		}
		i := c.place(f.hash)
		for c.slots[i].count > 0 {
			i = (i + 1) & (len(c.slots) - 1)
		}
		c.slots[i] = f
	}
}

// FNV-1a, 64 bits: http://www.isthe.com/chongo/tech/comp/fnv/. Package hash/fnv allocates for every hash.
const (
	fnvOffset = 14695981039346656037
	fnvPrime  = 1099511628211
)

func hash(kind byte, text string) uint64 {
	h := step(fnvOffset, kind)
	for i := range len(text) {
		h = step(h, text[i])
	}
	return mix(h)
}

func hashRunes(a, b, c rune) uint64 {
	h := step(fnvOffset, featureTrigram)
	for _, r := range [...]rune{a, b, c} {
		for shift := 0; shift < 24; shift += 8 {
			h = step(h, byte(r>>shift)) //nolint:gosec // the low byte is meant
		}
	}
	return mix(h)
}

func step(h uint64, b byte) uint64 { return (h ^ uint64(b)) * fnvPrime }

// mix is MurmurHash3's 64-bit finalizer: FNV alone leaves the upper bits of short inputs alike.
func mix(h uint64) uint64 {
	h = (h ^ h>>33) * 0xff51afd7ed558ccd
	h = (h ^ h>>33) * 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}
