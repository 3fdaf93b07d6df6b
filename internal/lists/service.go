package lists

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/memsidecar/memsidecar/internal/background"
	"github.com/memsidecar/memsidecar/internal/memory"
)

// Options describe a Service.
type Options struct {
	MaxItems int           // per registry
	MaxAge   time.Duration // since an item was last seen; 0: no limit
	ListTTL  time.Duration // since a list was shown; 0: no limit
	Now      func() time.Time
	Log      *slog.Logger
	// Heartbeat receives the result of each sweep. Optional.
	Heartbeat background.Heartbeat
}

// Service carries out the commands, and evicts old items in the background.
type Service struct {
	store   Store
	options Options
	ctx     context.Context
	cancel  context.CancelFunc
	done    chan struct{}
}

// sweepEvery is the interval of sweeps. One write deletes at most sweepStep items, because other writes wait for it.
const (
	sweepEvery = time.Hour
	sweepStep  = 500
)

// NewService returns a Service; Start starts its background work.
func NewService(store Store, options Options) *Service {
	if options.Now == nil {
		options.Now = time.Now
	}
	ctx, cancel := context.WithCancel(context.Background())
	return &Service{store: store, options: options, ctx: ctx, cancel: cancel, done: make(chan struct{})}
}

// Start sweeps periodically until Stop.
func (k *Service) Start() {
	go func() {
		defer close(k.done)
		background.Every(k.ctx, sweepEvery, func() {
			err := k.Sweep(k.ctx)
			if k.ctx.Err() == nil {
				k.options.Heartbeat.Beat(err)
			}
			if err != nil && k.ctx.Err() == nil && !errors.Is(err, memory.ErrUnavailable) {
				k.options.Log.Warn("deleting old results failed; it is retried later", "error", err)
			}
		})
	}()
}

// Stop stops the background work.
func (k *Service) Stop() {
	k.cancel()
	<-k.done
}

// Sweep deletes all items that are too old and all expired lists.
func (k *Service) Sweep(ctx context.Context) error {
	limits := k.limits(k.options.Now())
	if limits.SeenAfter.IsZero() && limits.ShownAfter.IsZero() {
		return nil
	}
	for {
		deleted, err := k.store.Sweep(ctx, limits, sweepStep)
		if err != nil || deleted == 0 {
			return err
		}
	}
}

func (k *Service) limits(now time.Time) Limits {
	l := Limits{MaxItems: k.options.MaxItems}
	if k.options.MaxAge > 0 {
		l.SeenAfter = now.Add(-k.options.MaxAge)
	}
	if k.options.ListTTL > 0 {
		l.ShownAfter = now.Add(-k.options.ListTTL)
	}
	return l
}

// Put adds items to a registry. It fills in times and limits.
func (k *Service) Put(ctx context.Context, p Put) (PutResult, error) {
	p.At = k.options.Now()
	p.Limits = k.limits(p.At)
	if p.ShownAt.IsZero() {
		p.ShownAt = p.At
	}
	return k.store.Put(ctx, p)
}

// Unseen calls Store.Unseen with the current time.
func (k *Service) Unseen(ctx context.Context, v View, keys []string) (unseen []string, lastCheck time.Time, err error) {
	return k.store.Unseen(ctx, v, keys, k.options.Now())
}

// Items calls Store.Items.
func (k *Service) Items(ctx context.Context, v View, after string, limit int) (Page, error) {
	return k.store.Items(ctx, v, after, limit)
}

// Shown returns the list being shown; an empty name means the one shown last. It returns ErrNotFound if there is no such list, or it
// expired.
func (k *Service) Shown(ctx context.Context, p Place, list string) (Shown, error) {
	shown, err := k.store.Shown(ctx, p, list, k.limits(k.options.Now()).ShownAfter)
	if errors.Is(err, memory.ErrNotFound) {
		return shown, fmt.Errorf("%s: %w", k.missing(p, list), memory.ErrNotFound)
	}
	return shown, err
}

// Around returns all lists shown in the places of a scope's conversation: its session, its channel, and its user.
func (k *Service) Around(ctx context.Context, scope memory.Scope, audience memory.Audience) (all []Shown, err error) {
	looked := map[string]bool{}
	for range 3 {
		p, ok := PlaceOf(scope, audience)
		key := string(p.Kind) + p.ID
		if ok && !looked[key] && (p.Kind != PlaceUser || p.Member != "") {
			looked[key] = true
			shown, err := k.store.AllShown(ctx, p, k.limits(k.options.Now()).ShownAfter)
			if err != nil {
				return nil, err
			}
			all = append(all, shown...)
		}
		if scope.SessionID != "" {
			scope.SessionID = ""
		} else {
			scope.Channel.ID = ""
		}
	}
	return all, nil
}

// missing is the error text for a list that is not being shown.
func (k *Service) missing(p Place, list string) string {
	name, expired := "no list", ""
	if list != "" {
		name = fmt.Sprintf("no list %q", list)
	}
	if k.options.ListTTL > 0 {
		expired = fmt.Sprintf(", or it was longer ago than numbered_lists.list_ttl, %s", k.options.ListTTL)
	}
	return fmt.Sprintf("%s was shown %s%s", name, p, expired)
}

// Expiry returns when a list expires, or the zero time if it never does.
func (k *Service) Expiry(s *Shown) time.Time {
	if k.options.ListTTL <= 0 {
		return time.Time{}
	}
	return s.ShownAt.Add(k.options.ListTTL)
}

// Choice is the result of a selection.
type Choice struct {
	Shown Shown
	Items []Numbered // in the order of the answer; empty when nothing was chosen
}

// Select returns the item that a number means in the list being shown. It returns ErrPrecondition if there is no list, and a
// *memory.RangeError if the list has no such number.
func (k *Service) Select(ctx context.Context, p Place, list string, o Ordinal) (Choice, error) {
	shown, err := k.selectable(ctx, p, list)
	if err != nil {
		return Choice{}, err
	}
	return shown.choose(Selection{Spans: []Span{{o, o}}})
}

// SelectText returns the items that a user's answer selects from the list being shown. understood is false if the answer is not a
// selection; errors are those of Select.
func (k *Service) SelectText(ctx context.Context, p Place, list, text string) (c Choice, understood bool, err error) {
	said, isSelection := ParseSelection(text, nil)
	shown, err := k.selectable(ctx, p, list)
	if err != nil {
		understood = isSelection || !errors.Is(err, memory.ErrPrecondition)
		return c, understood, err
	}
	titles := slices.Collect(Titles(shown.Items))
	if !isSelection {
		said, isSelection = ParseSelection(text, titles)
	} else if _, _, _, inside := said.Numbers(len(titles)); !inside {
		if n, ok := exactTitle(text, titles); ok { // the film "1917"
			said = Selection{Spans: []Span{{n, n}}}
		}
	}
	if _, _, repeated, _ := said.Numbers(len(titles)); !isSelection || repeated {
		return c, false, nil
	}
	c, err = shown.choose(said)
	return c, true, err
}

// selectable returns the list being shown, or ErrPrecondition.
func (k *Service) selectable(ctx context.Context, p Place, list string) (Shown, error) {
	shown, err := k.store.Shown(ctx, p, list, k.limits(k.options.Now()).ShownAfter)
	if errors.Is(err, memory.ErrNotFound) {
		err = fmt.Errorf("%w: %s: put one with PUT_MODE_MANUAL and the same scope first", memory.ErrPrecondition, k.missing(p, list))
	}
	return shown, err
}

// choose returns the items of a selection.
func (s Shown) choose(said Selection) (Choice, error) {
	count := len(s.Items)
	numbers, outside, _, ok := said.Numbers(count)
	if !ok {
		return Choice{}, &memory.RangeError{What: fmt.Sprintf("the list %q being shown", s.List), Got: outside, First: 1, Last: count}
	}
	c := Choice{Shown: s}
	for _, n := range numbers {
		c.Items = append(c.Items, s.Items[n-1])
	}
	return c, nil
}

// Delete calls Store.Delete. It returns ErrNotFound if nothing was deleted.
func (k *Service) Delete(ctx context.Context, v *View, p *Place, list string) (items int64, shown bool, err error) {
	items, registry, shown, err := k.store.Delete(ctx, v, p, list)
	if err == nil && !registry && !shown {
		err = fmt.Errorf("list %q: %w", list, memory.ErrNotFound)
	}
	return items, shown, err
}
