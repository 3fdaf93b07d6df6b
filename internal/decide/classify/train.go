package classify

import (
	"math"
	"math/rand/v2"
	"slices"
)

// Example is a labelled sentence.
type Example struct {
	Unit
	Label  Label
	Any    []Label // instead of Label: one of these
	Slot   string
	Flags  []string
	Weight float64
	// Language is that of the file, for statistics.
	Language string
}

const (
	buckets = 1 << 18
)

// rareFlag is how much more an example teaches a flag that it has: most examples lack each of them.
const rareFlag = 3

const (
	epochs = 20
	rate   = .1
	decay  = 1e-3
)

type sparse struct {
	bucket []uint32
	value  []float32
}

func (u Unit) vector() sparse {
	sums := map[uint32]float64{}
	var order []uint32
	u.features(func(name string, value float64) {
		b := hash(name)
		if _, ok := sums[b]; !ok {
			order = append(order, b)
		}
		sums[b] += value
	})
	v := sparse{bucket: order, value: make([]float32, len(order))}
	for i, b := range order {
		v.value[i] = float32(sums[b])
	}
	return v
}

// Weights are a trained model: a row of heads for each bucket of features.
type Weights struct {
	heads int
	w     []float32
	bias  []float32
}

func heads() int { return len(Labels()) + len(Slots()) + len(Flags()) }

// Train returns the weights that examples teach. The result depends on the examples and their order alone.
func Train(examples []Example) *Weights {
	n := heads()
	t := &trainer{
		Weights: &Weights{heads: n, w: make([]float32, buckets*n), bias: make([]float32, n)},
		squares: make([]float32, buckets*n), biasSquares: make([]float32, n),
		scored: make([]float32, n), wrong: make([]float32, n),
	}
	vectors := vectorsOf(examples)
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the order is to be the same every time
	order := make([]int, len(examples))
	for i := range order {
		order[i] = i
	}
	for epoch := range epochs {
		random.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		for _, i := range order {
			t.scores(vectors[i], t.scored)
			t.judge(&examples[i])
			t.learn(vectors[i], float32(examples[i].Weight), float32(rate/(1+.1*float64(epoch))))
		}
	}
	return t.Weights
}

// vectorsOf returns the features of examples that occur several times: others teach nothing.
func vectorsOf(examples []Example) []sparse {
	vectors := make([]sparse, len(examples))
	seen := map[uint32]int{}
	for i, e := range examples {
		vectors[i] = e.vector()
		for _, b := range vectors[i].bucket {
			seen[b]++
		}
	}
	for i := range vectors {
		v, k := &vectors[i], 0
		for j, b := range v.bucket {
			if seen[b] > 2 {
				v.bucket[k], v.value[k] = b, v.value[j]
				k++
			}
		}
		v.bucket, v.value = v.bucket[:k], v.value[:k]
	}
	return vectors
}

// trainer descends the gradient of the logarithmic loss, with a step of its own for each weight (AdaGrad).
type trainer struct {
	*Weights

	squares, biasSquares []float32 // sums of the squared gradients
	scored, wrong        []float32 // of the current example: the heads' probabilities, and how far they are off
}

// judge turns the scores of an example into probabilities, and compares them with what is right.
func (t *trainer) judge(e *Example) {
	slotsFrom, flagsFrom := len(allLabels), len(allLabels)+len(allSlots)
	softmax(t.scored[:slotsFrom])
	softmax(t.scored[slotsFrom:flagsFrom])
	for k := flagsFrom; k < t.heads; k++ {
		t.scored[k] = sigmoid(t.scored[k])
	}
	copy(t.wrong, t.scored)
	labels, slots, flags := t.wrong[:slotsFrom], t.wrong[slotsFrom:flagsFrom], t.wrong[flagsFrom:]
	right := e.Any
	if e.Label != "" {
		right = []Label{e.Label}
	}
	sum := float32(0)
	for _, l := range right {
		sum += t.scored[slices.Index(allLabels, l)]
	}
	for _, l := range right {
		k := slices.Index(allLabels, l)
		labels[k] -= t.scored[k] / sum
	}
	kept := slices.Contains(Kept(), right[0])
	if e.Label != "" && (kept || e.Slot != "") {
		slots[max(0, slices.Index(allSlots, e.Slot))]--
	} else {
		clear(slots)
	}
	for k, f := range allFlags {
		switch {
		case f == keepFlag:
			if kept {
				flags[k]--
			}
		case e.Label == "":
			flags[k] = 0 // not known
		case slices.Contains(e.Flags, f):
			flags[k] = (flags[k] - 1) * rareFlag
		}
	}
}

// learn moves the weights of an example's features.
func (t *trainer) learn(v sparse, weight, step float32) {
	for j, b := range v.bucket {
		row, sums := t.w[int(b)*t.heads:int(b+1)*t.heads], t.squares[int(b)*t.heads:int(b+1)*t.heads]
		for k, wrong := range t.wrong {
			if wrong > -.003 && wrong < .003 {
				continue
			}
			g := wrong*v.value[j]*weight + decay*row[k]
			sums[k] += g * g
			row[k] -= step * g / (float32(math.Sqrt(float64(sums[k]))) + 1e-3)
		}
	}
	for k, wrong := range t.wrong {
		g := wrong * weight
		t.biasSquares[k] += g * g
		t.bias[k] -= step * g / (float32(math.Sqrt(float64(t.biasSquares[k]))) + 1e-3)
	}
}

func (w *Weights) scores(v sparse, out []float32) {
	copy(out, w.bias)
	for j, b := range v.bucket {
		row, x := w.w[int(b)*w.heads:int(b+1)*w.heads], v.value[j]
		for k, weight := range row {
			out[k] += weight * x
		}
	}
}

func softmax(x []float32) {
	most := slices.Max(x)
	sum := float32(0)
	for i := range x {
		x[i] = float32(math.Exp(float64(x[i] - most)))
		sum += x[i]
	}
	for i := range x {
		x[i] /= sum
	}
}

func sigmoid(x float32) float32 { return float32(1 / (1 + math.Exp(-float64(x)))) }
