package sessiontest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/memsidecar/memsidecar/internal/memory"
)

func testTakeWithLeadingContext(s *suite) {
	scope := direct("ann", "s1")
	for i := range 30 {
		s.add(scope, answered(fmt.Sprint("news ", i)))
	}
	if _, ok := s.take(scope); ok {
		s.Error("messages without a recipient were taken")
	}
	s.add(scope, said("ann", "stop it"))
	c, _ := s.take(scope)
	if got := s.dialogue("ann", c.ID); len(got) > 25 || !slices.Equal(got[len(got)-3:], []string{"news 28", "news 29", "stop it"}) {
		s.Errorf("considered are %q", got)
	}
	s.add(direct("ann", "s2"), append(many("", 0), slices.Repeat([]memory.Message{answered("news")}, 30)...)...)
	s.add(direct("ann", "s2"), append(slices.Repeat([]memory.Message{answered("news")}, 30), said("ann", "stop"))...)
	c, _ = s.take(direct("ann", "s2"))
	if got := s.dialogue("ann", c.ID); len(got) > 25 || got[len(got)-1] != "stop" {
		s.Errorf("considered are %q", got)
	}
	// However long the bot's earlier messages are, the person's message fits.
	var long []memory.Message
	for range 18 {
		long = append(long, answered(strings.Repeat("x", memory.MaxContentBytes)))
	}
	s.add(direct("ann", "s3"), long[:9]...)
	s.add(direct("ann", "s3"), append(long[9:], said("ann", "too long"))...)
	if c, ok := s.take(direct("ann", "s3")); !ok || c.MessageCount < 10 || s.get(direct("ann", "s3")).Unconsidered != 0 {
		s.Errorf("taken %+v, %t", c, ok)
	}
	// An answer that arrives after its question was accepted stays pending until the next message.
	s.add(scope, answered("all right"))
	if _, ok := s.take(scope); ok {
		s.Error("an answer alone was taken")
	}
	s.add(scope, said("ann", "thank you"))
	c, _ = s.take(scope)
	if got := s.dialogue("ann", c.ID); !slices.Equal(got, []string{"all right", "thank you"}) {
		s.Errorf("considered are %q", got)
	}
}
