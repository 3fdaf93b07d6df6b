package sqlstore

import (
	"encoding/binary"
	"errors"
	"hash/fnv"
	"math"
	"slices"

	"github.com/memsidecar/memsidecar/internal/memory"
)

// posting says that a message holds a term.
type posting struct {
	row       int64 // the message
	frequency int
	tag       postingTag
}

// A block of postings is, for each, a varint of twice the distance to the row before, plus 1 when a varint of the
// frequency follows, and the tag. The first distance is from the block's first_row and so 0.
const (
	// maxBlock keeps a block with its key below what SQLite stores inside a page of a table without a rowid (1,002 bytes).
	maxBlock = 900
	// maxPosting is the longest a posting gets.
	maxPosting = 2*binary.MaxVarintLen64 + 1
)

var errPostings = errors.New("a block of postings is broken")

// appendPosting adds a posting to a block whose last row is given.
func appendPosting(data []byte, last int64, p posting) []byte {
	distance := uint64(p.row-last) << 1 //nolint:gosec // rows rise inside a block
	if p.frequency > 1 {
		data = binary.AppendUvarint(data, distance|1)
		data = binary.AppendUvarint(data, uint64(p.frequency))
	} else {
		data = binary.AppendUvarint(data, distance)
	}
	return append(data, byte(p.tag))
}

// decodePostings adds a block's postings to a list.
func decodePostings(list []posting, first int64, data []byte) ([]posting, error) {
	row := first
	list = slices.Grow(list, len(data)/2) // most take two or three bytes
	for len(data) > 0 {
		head, n := binary.Uvarint(data)
		if n <= 0 {
			return nil, errPostings
		}
		data = data[n:]
		p := posting{frequency: 1}
		if head&1 != 0 {
			frequency, n := binary.Uvarint(data)
			if n <= 0 || frequency > math.MaxInt32 {
				return nil, errPostings
			}
			p.frequency, data = int(frequency), data[n:]
		}
		if len(data) == 0 {
			return nil, errPostings
		}
		row += int64(head >> 1)
		p.row, p.tag, data = row, postingTag(data[0]), data[1:]
		list = append(list, p)
	}
	return list, nil
}

// encodePostings writes a whole block.
func encodePostings(list []posting) []byte {
	var data []byte
	last := list[0].row
	for _, p := range list {
		data = appendPosting(data, last, p)
		last = p.row
	}
	return data
}

// postingTag is what a search wants to know of a message before it reads it: about how many terms it has, in the upper
// half, and in the lower half which visibility, one of sixteen classes. What is found is then looked at exactly.
type postingTag byte

func newPostingTag(length int, channel memory.Channel) postingTag {
	class := min(15, int(math.Round(2*math.Log2(float64(max(1, length))))))
	return postingTag(class<<4 | int(visibilityClass(channel.VisibilityKey()))) //nolint:gosec // below 256
}

func visibilityClass(key string) uint8 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(key))
	return uint8(h.Sum32() % 16)
}

// length is the number of terms, about.
func (t postingTag) length() float64 { return lengths[t>>4] }

// lengths are what the classes of length stand for: each is 1.4 times the one before.
var lengths = func() (l [16]float64) {
	for i := range l {
		l[i] = math.Exp2(float64(i) / 2)
	}
	return l
}()

// visibilityClasses are the classes that an audience sees.
type visibilityClasses uint16

func classesOf(audience memory.Audience) (c visibilityClasses) {
	keys, all := audience.Keys()
	if all {
		return math.MaxUint16
	}
	for _, key := range keys {
		c |= 1 << visibilityClass(key)
	}
	return c
}

func (c visibilityClasses) has(t postingTag) bool { return c&(1<<(t&15)) != 0 }
