package sqlstore

// candidate is a message that a search may find.
type candidate struct {
	row   int64
	score float32
}

// candidateHeap gives candidates, the best first and of equals the newest. Most are never asked for, so that a heap is
// quicker than sorting; and quicker than container/heap, which boxes each value.
type candidateHeap []candidate

func (h candidateHeap) less(i, j int) bool {
	return h[i].score > h[j].score || h[i].score == h[j].score && h[i].row > h[j].row
}

func (h candidateHeap) init() {
	for i := len(h)/2 - 1; i >= 0; i-- {
		h.down(i)
	}
}

func (h *candidateHeap) pop() candidate {
	list := *h
	best := list[0]
	last := len(list) - 1
	list[0] = list[last]
	*h = list[:last]
	h.down(0)
	return best
}

func (h candidateHeap) down(i int) {
	for {
		child := 2*i + 1
		if child >= len(h) {
			return
		}
		if right := child + 1; right < len(h) && h.less(right, child) {
			child = right
		}
		if !h.less(child, i) {
			return
		}
		h[i], h[child] = h[child], h[i]
		i = child
	}
}
