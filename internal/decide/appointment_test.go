package decide_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/memsidecar/memsidecar/internal/decide"
	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/vectorstore"
)

// TestAppointment: what was said on Monday of Friday is known on Thursday, and history on Saturday, without anybody writing.
func TestAppointment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		monday := time.Date(2000, 1, 3, 9, 0, 0, 0, time.UTC) // the bubble's clock begins on the Saturday before
		time.Sleep(time.Until(monday))
		s := newSystem(t, &judge{summarize: func(decide.Transcript) ([]memory.Statement, error) {
			return []memory.Statement{{
				Text: "The user sees the dentist on Friday.", Language: "en", Kind: memory.KindAppointment, Importance: 0.6,
				MessageIDs: []string{"#0"}, ObservedAt: monday, ValidTo: monday.AddDate(0, 0, 5).Truncate(24 * time.Hour),
			}}, nil
		}})
		c, err := s.Consider(t.Context(), decide.Request{Dialogue: memory.Dialogue{
			Scope:    memory.Scope{Namespace: "default", UserID: "ann"},
			Messages: []memory.Message{{Role: memory.RoleUser, Speaker: "ann", Content: "Dentist on Friday!", Time: monday}},
		}, Wait: time.Minute})
		if err != nil || c.State != memory.StateRemembered {
			t.Fatalf("%+v, %v", c, err)
		}
		for _, test := range []struct {
			day    string
			at     time.Time
			found  int
			status memory.Status
		}{
			{"Thursday", monday.AddDate(0, 0, 3), 1, memory.StatusActive},
			{"Friday", monday.AddDate(0, 0, 4).Add(14 * time.Hour), 1, memory.StatusActive},
			{"Saturday", monday.AddDate(0, 0, 5), 0, memory.StatusExpired},
		} {
			time.Sleep(time.Until(test.at))
			hits, err := s.store.SearchKeyword(t.Context(), c.Scope.User(), "when is the dentist?", vectorstore.Filter{Audience: memory.Everything()}, 5)
			if err != nil || len(hits) != test.found {
				t.Errorf("on %s: %d hits, %v", test.day, len(hits), err)
			}
			page, err := s.store.List(t.Context(), c.Scope.User(), vectorstore.ListQuery{
				Filter: vectorstore.Filter{Audience: memory.Everything(), Statuses: []memory.Status{test.status}}, Limit: 5,
			})
			if err != nil || len(page.Memories) != 1 {
				t.Errorf("on %s %d memories are listed as %s, %v", test.day, len(page.Memories), test.status, err)
			}
		}
	})
}
