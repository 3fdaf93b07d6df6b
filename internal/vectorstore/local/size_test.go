package local

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/vectorstore"
)

// statement returns a realistic text, a different one for each number.
func statement(n int) string {
	english := strings.Fields("jazz peanuts tea bikes chess cameras pottery bread houseplants games shoes paints espresso trains scarves")
	chinese := strings.Fields("爵士唱片 花生 绿茶 山地车 围棋书 胶片相机 陶器 酸面包 盆栽 桌游 跑鞋 油画颜料 咖啡 火车模型 羊毛围巾")
	thing := n / 2 % len(english)
	if n%2 == 0 {
		return fmt.Sprintf("The user likes %s, said %s, and often goes to street number %d for it.", english[thing], english[n/26%len(english)], n)
	}
	return fmt.Sprintf("用户去年在第%d次旅行时买了%s，还打算明年春天和姐姐一起学%s。", n, chinese[thing], chinese[n/26%len(english)])
}

// fill builds a user's index as load does.
func fill(t *testing.T, user, memories, dimensions int) *index {
	t.Helper()
	x, err := newIndex("test")
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(uint64(user), 1))
	for i := range memories {
		text := statement(i)
		vector := make([]float32, dimensions)
		for j := range vector {
			vector[j] = random.Float32()
		}
		m := memory.Memory{
			ID: fmt.Sprintf("mem_%028d", i), User: memory.User{Namespace: "default", ID: fmt.Sprint("user", user)}, Text: text,
			Language: strings.Clone("en"), Kind: memory.Kind(strings.Clone("fact")), Channel: memory.Channel{Kind: memory.ChannelKind(strings.Clone("direct"))},
			Provenance: memory.Provenance{
				Source: memory.Source(strings.Clone("dialogue")), ConsiderationID: fmt.Sprintf("con_%036d", i), SpeakerID: fmt.Sprint("user", user),
				MessageIDs: []string{strings.Clone("#0")}, Quote: strings.Clone(text), Reason: strings.Repeat("r", 40), DecidedBy: strings.Clone("rules"),
			},
			CreatedAt: time.Now(), UpdatedAt: time.Now(), ObservedAt: time.Now(), LastSaidAt: time.Now(),
		}
		err := x.put(context.Background(), m, &vectorstore.Embedding{Fingerprint: "test", Chunks: [][]float32{vector}})
		if err != nil {
			t.Fatal(err)
		}
	}
	return x
}

// heap returns how many bytes are in use.
func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestSizeMatchesTheHeap: The counted size of an index is the memory that it occupies. The budget depends on it.
func TestSizeMatchesTheHeap(t *testing.T) {
	for _, c := range []struct{ users, memories, dimensions int }{{1000, 10, 256}, {100, 100, 256}, {10, 1000, 768}} {
		before := heap()
		var counted int64
		var all []*index
		for user := range c.users {
			x := fill(t, user, c.memories, c.dimensions)
			counted += x.size()
			all = append(all, x)
		}
		occupied := heap() - before
		runtime.KeepAlive(all)
		if ratio := float64(occupied) / float64(counted); ratio < 0.85 || ratio > 1.15 {
			t.Errorf("%d memories of %d dimensions occupy %d bytes and are counted with %d: %.2f", c.memories, c.dimensions,
				occupied/int64(c.users), counted/int64(c.users), ratio)
		}
	}
}
