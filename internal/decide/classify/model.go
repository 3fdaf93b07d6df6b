package classify

import (
	"bytes"
	"compress/gzip"
	_ "embed"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"slices"
	"sort"
	"strings"
	"sync"
)

//go:embed weights.gz
var embedded []byte

// Default returns the model that is built in.
var Default = sync.OnceValue(func() *Model {
	m, err := Read(bytes.NewReader(embedded))
	if err != nil {
		panic("classify: the weights that are built in: " + err.Error())
	}
	return m
})

// Model classifies sentences. It is safe for concurrent use, and gives the same result on every machine.
type Model struct {
	bias    []float32
	scale   []float32 // by head
	from    []uint32  // by bucket: its first entry; one more than there are buckets
	entries []entry
}

type entry struct {
	head  uint8
	units int8 // of scale
}

// Reading is what a model says about a sentence. The numbers are probabilities.
type Reading struct{ labels, slots, flags []float32 }

// Certain returns the reading of a sentence that is known, for tests.
func Certain(label Label, slot string, flags ...string) Reading {
	r := Reading{labels: make([]float32, len(allLabels)), slots: make([]float32, len(allSlots)), flags: make([]float32, len(allFlags))}
	r.labels[slices.Index(allLabels, label)] = 1
	r.slots[slices.Index(allSlots, slot)] = 1
	for _, f := range flags {
		r.flags[slices.Index(allFlags, f)] = 1
	}
	if slices.Contains(Kept(), label) {
		r.flags[slices.Index(allFlags, keepFlag)] = 1
	}
	return r
}

// Is returns the probability that the sentence has one of the labels.
func (r Reading) Is(labels ...Label) float64 {
	sum := 0.0
	for _, l := range labels {
		sum += float64(r.labels[slices.Index(allLabels, l)])
	}
	return sum
}

// Keep returns the probability that the sentence is worth keeping.
func (r Reading) Keep() float64 { return (r.Is(allLabels[:keepLabels]...) + r.Has(keepFlag)) / 2 }

// Label returns the most probable label.
func (r Reading) Label() Label { return allLabels[slices.Index(r.labels, slices.Max(r.labels))] }

// Kept returns the most probable label of a sentence to keep.
func (r Reading) Kept() Label {
	kept := r.labels[:keepLabels]
	return allLabels[slices.Index(kept, slices.Max(kept))]
}

// Slot returns what the sentence is about if it is to be kept, or "".
func (r Reading) Slot() string { return allSlots[slices.Index(r.slots, slices.Max(r.slots))] }

// SlotChance returns the probability of Slot.
func (r Reading) SlotChance() float64 { return float64(slices.Max(r.slots)) }

// Has returns the probability of a flag.
func (r Reading) Has(flag string) float64 { return float64(r.flags[slices.Index(allFlags, flag)]) }

var allLabels, allSlots, allFlags = Labels(), Slots(), Flags()

// Read classifies a sentence.
func (m *Model) Read(u Unit) Reading {
	out := slices.Clone(m.bias)
	u.features(func(name string, value float64) {
		b := hash(name)
		for _, e := range m.entries[m.from[b]:m.from[b+1]] {
			out[e.head] += float32(float32(e.units) * float32(m.scale[e.head]*float32(value))) // the conversions forbid a fused operation
		}
	})
	return readingOf(out)
}

func readingOf(out []float32) Reading {
	r := Reading{labels: out[:len(allLabels)], slots: out[len(allLabels) : len(allLabels)+len(allSlots)], flags: out[len(allLabels)+len(allSlots):]}
	softmax(r.labels)
	softmax(r.slots)
	for i := range r.flags {
		r.flags[i] = sigmoid(r.flags[i])
	}
	return r
}

// Why names the words that weigh most for a label, the heaviest first.
func (m *Model) Why(u Unit, label Label, most int) []string {
	head := uint8(slices.Index(allLabels, label)) //nolint:gosec // there are fewer than 256 labels
	weight := map[string]float32{}
	u.features(func(name string, value float64) {
		group, words, _ := strings.Cut(name, ":")
		if group == "c" || group == "s" || group == "r" || group == "reply" || group == "m" || group == "place" || group == "bot" {
			return
		}
		b := hash(name)
		for _, e := range m.entries[m.from[b]:m.from[b+1]] {
			if e.head == head {
				weight[words] += float32(e.units) * m.scale[e.head] * float32(value)
			}
		}
	})
	words := make([]string, 0, len(weight))
	for w, x := range weight {
		if x > 0 {
			words = append(words, w)
		}
	}
	sort.Slice(words, func(i, j int) bool {
		a, b := words[i], words[j]
		if weight[a] != weight[b] {
			return weight[a] > weight[b]
		}
		return a < b
	})
	var list []string
	for _, w := range words {
		if len(list) < most && !slices.ContainsFunc(list, func(l string) bool { return strings.Contains(l, w) || strings.Contains(w, l) }) {
			list = append(list, w)
		}
	}
	return list
}

const magic = "memsidecar classify 1\n"

// least is the smallest weight that is stored, as a share of the largest of its head.
const least = .1

// WriteTo writes the weights in the form that Read reads, each in one byte.
func (w *Weights) WriteTo(out io.Writer) (int64, error) {
	var b bytes.Buffer
	b.WriteString(magic)
	b.WriteByte(byte(w.heads)) //nolint:gosec // there are fewer than 256
	scale := make([]float32, w.heads)
	for i, x := range w.w {
		scale[i%w.heads] = max(scale[i%w.heads], float32(math.Abs(float64(x)))/127)
	}
	for k := range w.heads {
		b.Write(binary.LittleEndian.AppendUint32(nil, math.Float32bits(w.bias[k])))
		b.Write(binary.LittleEndian.AppendUint32(nil, math.Float32bits(scale[k])))
	}
	for bucket := range buckets {
		var entries []byte
		for k, x := range w.w[bucket*w.heads : (bucket+1)*w.heads] {
			if units := math.Round(float64(x / max(scale[k], 1e-9))); math.Abs(units) >= 127*least {
				entries = append(entries, byte(k), byte(int8(units))) //nolint:gosec // heads and units fit
			}
		}
		b.WriteByte(byte(len(entries) / 2)) //nolint:gosec // at most one for each head
		b.Write(entries)
	}
	zipped, err := gzip.NewWriterLevel(out, gzip.BestCompression)
	if err != nil {
		return 0, err
	}
	n, err := zipped.Write(b.Bytes())
	if err == nil {
		err = zipped.Close()
	}
	return int64(n), err
}

// Read reads weights.
func Read(in io.Reader) (*Model, error) {
	zipped, err := gzip.NewReader(in)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(zipped)
	if err != nil {
		return nil, err
	}
	data, ok := bytes.CutPrefix(data, []byte(magic))
	if !ok || len(data) < 1 || int(data[0]) != heads() {
		return nil, fmt.Errorf("not a model with %d heads: train it again", heads())
	}
	n := int(data[0])
	data = data[1:]
	m := &Model{bias: make([]float32, n), scale: make([]float32, n), from: make([]uint32, buckets+1)}
	if len(data) < 8*n {
		return nil, io.ErrUnexpectedEOF
	}
	for k := range n {
		m.bias[k] = math.Float32frombits(binary.LittleEndian.Uint32(data[8*k:]))
		m.scale[k] = math.Float32frombits(binary.LittleEndian.Uint32(data[8*k+4:]))
	}
	data = data[8*n:]
	for bucket := range buckets {
		if len(data) == 0 || len(data) < 1+2*int(data[0]) {
			return nil, io.ErrUnexpectedEOF
		}
		for i := range int(data[0]) {
			m.entries = append(m.entries, entry{data[1+2*i], int8(data[2+2*i])}) //nolint:gosec // it was written as an int8
		}
		data = data[1+2*int(data[0]):]
		m.from[bucket+1] = uint32(len(m.entries)) //nolint:gosec // far fewer than 2^32
	}
	return m, nil
}
