package inflight

import (
	"context"
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/memsidecar/memsidecar/internal/memory"
)

func wantOverload(t *testing.T, err error) {
	t.Helper()
	overload := (*memory.OverloadError)(nil)
	if !errors.As(err, &overload) || overload.RetryAfter <= 0 {
		t.Fatalf("got %v, want an overload with a delay", err)
	}
}

func TestBytesAreRefusedAboveTheLimit(t *testing.T) {
	bytes := NewBytes(1 << 20)
	first, second := bytes.Open(nil), bytes.Open(nil)
	if err := first.Grow(minBytes - 10); err != nil {
		t.Fatal(err)
	}
	wantOverload(t, second.Grow(11))
	first.Release()
	first.Release()
	if err := second.Grow(minBytes); err != nil {
		t.Fatal(err)
	}
	second.Reset()
	if err := second.Grow(5); err != nil || bytes.Used() != 5 {
		t.Errorf("%d bytes are used, %v", bytes.Used(), err)
	}
	if second.Release(); bytes.Used() != 0 {
		t.Errorf("%d bytes are used after all releases", bytes.Used())
	}
}

func TestBytesClosesTheConnectionThatHasStalledLongest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bytes := NewBytes(1 << 20)
		evicted := make(chan string, 3)
		inside := bytes.Open(nil)
		old := bytes.Open(func() { evicted <- "old" })
		young := bytes.Open(func() { evicted <- "young" })
		for _, s := range []*Share{inside, old} {
			if err := s.Grow(1); err != nil {
				t.Fatal(err)
			}
		}
		wantOverload(t, young.Grow(minBytes))
		synctest.Wait()
		if len(evicted) > 0 {
			t.Error("a connection that has not stalled is closed")
		}
		time.Sleep(stallAfter)
		if err := young.Grow(1); err != nil {
			t.Fatal(err)
		}
		wantOverload(t, young.Grow(minBytes))
		if who := <-evicted; who != "old" {
			t.Errorf("connection %s is closed", who)
		}
	})
}

func conn(t *testing.T, all *Connections) *Conn {
	t.Helper()
	server, client := net.Pipe()
	t.Cleanup(func() { _ = client.Close() })
	c := all.add(server)
	if ConnOf(c.RemoteAddr()) != c || ConnFrom(WithConn(context.Background(), c)) != c {
		t.Fatal("no connection is found by its address")
	}
	return c
}

func closed(c *Conn) bool {
	_ = c.SetReadDeadline(time.Now())
	_, err := c.Read(make([]byte, 1))
	timeout := net.Error(nil)
	return !errors.As(err, &timeout) || !timeout.Timeout()
}

func TestTooManyConnectionsCloseStrangersFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := NewConnections()
		all.maxConnections = 3
		bot, idle := conn(t, all), conn(t, all)
		_ = must(bot.Begin())(t)
		must(idle.Begin())(t)()
		time.Sleep(time.Hour)
		stranger := conn(t, all)
		time.Sleep(time.Second)
		fourth := conn(t, all)
		synctest.Wait()
		if !closed(stranger) || closed(bot) || closed(idle) || closed(fourth) {
			t.Errorf("closed: stranger %t, bot %t, idle %t, new %t", closed(stranger), closed(bot), closed(idle), closed(fourth))
		}
		must(fourth.Begin())(t)()
		conn(t, all)
		synctest.Wait()
		if !closed(idle) || closed(bot) {
			t.Errorf("closed: idle %t, bot %t", closed(idle), closed(bot))
		}
	})
}

func TestTooManyCallsCloseTheConnectionThatHoldsThemLongest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := NewConnections()
		all.maxCalls = 4
		attacker, watcher, bot := conn(t, all), conn(t, all), conn(t, all)
		_ = must(watcher.Begin())(t) // one long call is no attack
		time.Sleep(time.Hour)
		for range 3 {
			_ = must(attacker.Begin())(t)
		}
		time.Sleep(time.Minute)
		_, err := attacker.Begin()
		wantOverload(t, err) // closes no other connection
		end := must(bot.Begin())(t)
		synctest.Wait()
		if !closed(attacker) || closed(watcher) || all.calls != 2 {
			t.Errorf("closed: attacker %t, watcher %t; %d calls", closed(attacker), closed(watcher), all.calls)
		}
		end()
		end()
		if all.calls != 1 {
			t.Errorf("%d calls are counted", all.calls)
		}
	})
}

func must[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}
