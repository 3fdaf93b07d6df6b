package queuetest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/queue"
)

// model is the expected state of the store. Maps have users as keys.
type model struct {
	*suite
	random   *rand.Rand
	people   []string
	accepted map[string]int
	running  map[string]queue.Job
	failed   []string // in the form of names
	ended    map[string]bool
}

// testRandomCalls makes random calls and checks that each user's jobs are claimed in order and that all end.
func testRandomCalls(s *suite) {
	const steps, seed = 250, 7
	m := &model{
		suite: s, random: rand.New(rand.NewPCG(seed, seed)), people: []string{"ann", "ben", "eve"}, //nolint:gosec // deterministic
		accepted: map[string]int{}, running: map[string]queue.Job{}, ended: map[string]bool{},
	}
	for range steps {
		s.later(time.Second)
		m.step()
	}
	for len(m.failed) > 0 {
		m.retry()
	}
	for _, job := range m.running {
		m.end(job, memory.StateSkipped)
	}
	s.later(time.Minute)
	served := m.drain()

	total := 0
	for _, person := range m.people {
		total += m.accepted[person]
		// Only the first job may be newer than the next: it was due when an older one was retried.
		if order := served[person]; len(order) > 1 && !slices.IsSorted(order[1:]) {
			s.Errorf("%s's jobs were claimed in the order %v", person, order)
		}
		for _, job := range s.all(user(person)) {
			if !job.Consideration.State.Final() {
				s.Errorf("%q is left %s", nameOf(job), job.Consideration.State)
			}
		}
	}
	if len(m.ended) != total {
		s.Errorf("%d of %d ended", len(m.ended), total)
	}
}

func nameOf(job queue.Job) string { return names([]queue.Job{job})[0] }

func (m *model) step() {
	m.Helper()
	job, isRunning := m.running[m.people[m.random.IntN(len(m.people))]]
	switch n := m.random.IntN(8); {
	case n < 2:
		m.accept()
	case n < 4:
		m.claim()
	case n == 4 && isRunning:
		m.end(job, memory.StateRemembered)
	case n == 5 && isRunning:
		m.end(job, memory.StateFailed)
	case n == 6 && isRunning:
		due := m.now.Add(time.Duration(m.random.IntN(5)) * time.Second)
		if err := m.store.Postpone(m.Context(), job.Seq, due, memory.Outcome{}, m.now); err != nil {
			m.Fatal(err)
		}
		delete(m.running, job.User().ID)
	case n == 7 && len(m.failed) > 0 && m.random.IntN(2) == 0:
		m.retry()
	case n == 7:
		m.recover()
	}
}

func (m *model) accept() {
	m.Helper()
	first := m.random.IntN(len(m.people))
	others := slices.Delete(slices.Clone(m.people), first, first+1)[:m.random.IntN(3)]
	m.add(lobby(m.people[first]), others...)
	for _, person := range append(others, m.people[first]) {
		m.accepted[person]++
	}
}

func (m *model) claim() {
	m.Helper()
	jobs, _ := m.suite.claim(1 + m.random.IntN(3))
	for _, job := range jobs {
		if before, ok := m.running[job.User().ID]; ok {
			m.Fatalf("%q was claimed while %q runs", nameOf(job), nameOf(before))
		}
		if m.ended[nameOf(job)] {
			m.Fatalf("%q was claimed after its end", nameOf(job))
		}
		m.running[job.User().ID] = job
	}
}

func (m *model) end(job queue.Job, state memory.State) {
	m.Helper()
	m.finish(job, state)
	delete(m.running, job.User().ID)
	if state == memory.StateFailed {
		m.failed = append(m.failed, nameOf(job))
	} else {
		m.ended[nameOf(job)] = true
	}
}

// retry retries the first failed job.
func (m *model) retry() {
	m.Helper()
	var person, id string
	if _, err := fmt.Sscan(m.failed[0], &person, &id); err != nil {
		m.Fatal(err)
	}
	m.failed = m.failed[1:]
	if _, err := m.store.Retry(m.Context(), user(person), id, memory.Everything(), m.now); err != nil {
		m.Fatal(err)
	}
}

// recover recovers some of the running jobs.
func (m *model) recover() {
	m.Helper()
	var except []int64
	for _, person := range m.people {
		job, ok := m.running[person]
		switch {
		case !ok:
		case m.random.IntN(2) == 0:
			except = append(except, job.Seq)
		default:
			delete(m.running, person)
		}
	}
	if err := m.store.Recover(m.Context(), except, m.now); err != nil {
		m.Fatal(err)
	}
}

// drain runs all remaining jobs, and returns each user's in the order of their claims.
func (m *model) drain() map[string][]int64 {
	m.Helper()
	served := map[string][]int64{}
	for {
		m.claim()
		if len(m.running) == 0 {
			return served
		}
		for person, job := range m.running {
			served[person] = append(served[person], job.Seq)
			m.end(job, memory.StateRemembered)
		}
	}
}
