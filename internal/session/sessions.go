package session

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/memsidecar/memsidecar/internal/memory"
)

// The commands on single sessions. An empty session id means the user's current session in the viewer's channel.

// Policies returns the policy of a namespace.
type Policies func(namespace string) Policy

// CheckEnabled returns memory.ErrPrecondition if sessions are switched off for the namespace.
func (p Policies) CheckEnabled(namespace string) error {
	if p(namespace).Enabled {
		return nil
	}
	return fmt.Errorf("%w: sessions are switched off for the namespace %q (session.enabled)", memory.ErrPrecondition, namespace)
}

// CheckEnabled is Policies.CheckEnabled.
func (w *Writer) CheckEnabled(namespace string) error { return w.Policies.CheckEnabled(namespace) }

// current returns the id of the current session, or "".
func (k *Service) current(ctx context.Context, v Viewer) (string, error) {
	if err := k.CheckEnabled(v.Namespace); err != nil {
		return "", err
	}
	return k.Store.Current(ctx, v)
}

// resolve returns the given id, or that of the current session.
func (k *Service) resolve(ctx context.Context, v Viewer, id string) (string, error) {
	if id != "" {
		return id, k.CheckEnabled(v.Namespace)
	}
	id, err := k.current(ctx, v)
	if err == nil && id == "" {
		err = fmt.Errorf("%w: the scope names no session, and there is no current one in this channel", memory.ErrNotFound)
	}
	return id, err
}

// Get returns a session that the viewer may see.
func (k *Service) Get(ctx context.Context, v Viewer, id string) (Session, error) {
	id, err := k.resolve(ctx, v, id)
	if err != nil {
		return Session{}, err
	}
	return k.Store.Get(ctx, v, id)
}

// List returns a page of the sessions that the viewer may see, last changed first, and the id of the current one, or "". next is empty
// on the last page.
func (k *Service) List(ctx context.Context, v Viewer, after string, limit int) (sessions []Session, current, next string, err error) {
	if current, err = k.current(ctx, v); err != nil {
		return nil, "", "", err
	}
	sessions, next, err = k.Store.List(ctx, v, after, limit)
	return sessions, current, next, err
}

// Messages returns a page of a session's messages.
func (k *Service) Messages(ctx context.Context, v Viewer, id string, q MessageQuery) (Page, error) {
	id, err := k.resolve(ctx, v, id)
	if err != nil {
		return Page{}, err
	}
	return k.Store.Messages(ctx, v, id, q)
}

// Description is a session with its summary and its newest messages, oldest first.
type Description struct {
	Session Session
	Summary *Summary // nil if there is none
	Newest  []Message
}

// Describe returns a session with its newest messages, at most newest of them.
func (k *Service) Describe(ctx context.Context, v Viewer, id string, newest int) (Description, error) {
	id, err := k.resolve(ctx, v, id)
	if err != nil {
		return Description{}, err
	}
	window, err := k.Store.Window(ctx, v, id, WindowQuery{Limit: 1})
	if err != nil {
		return Description{}, err
	}
	d := Description{Session: window.Session, Summary: window.Summary}
	if newest > 0 {
		page, err := k.Store.Messages(ctx, v, id, MessageQuery{NewestFirst: true, Limit: newest})
		if err != nil {
			return Description{}, err
		}
		slices.Reverse(page.Messages)
		d.Newest = page.Messages
	}
	return d, nil
}

// WindowExpiry returns when the window of a session expires. It is zero if it never does, or has expired.
func (k *Service) WindowExpiry(s *Session, now time.Time) time.Time {
	ttl := k.Policy(s.Namespace).TTL
	if expiry := s.ActiveAt.Add(ttl); !s.ActiveAt.IsZero() && ttl > 0 && expiry.After(now) {
		return expiry
	}
	return time.Time{}
}

// Update changes a session that the viewer may write to. wrong are the violations found before.
func (k *Service) Update(ctx context.Context, v Viewer, id string, p Patch, wrong memory.Violations) (Session, error) {
	if p.Title != nil {
		p.Title = new(k.Redactor.Text(*p.Title))
	}
	if p.Metadata != nil {
		p.Metadata = new(k.Redactor.JSON(*p.Metadata))
	}
	d := description{title: p.Title, metadata: p.Metadata}
	if p.MemorizeEvery != nil {
		d.memorizeEvery = *p.MemorizeEvery
	}
	if err := d.check("session", wrong); err != nil {
		return Session{}, err
	}
	id, err := k.resolve(ctx, v, id)
	if err != nil {
		return Session{}, err
	}
	p.At = k.Now()
	updated, err := k.Store.Update(ctx, v, id, p)
	if err == nil && p.MemorizeEvery != nil {
		k.Wake() // pending messages may be due now
	}
	return updated, err
}

// Switch makes a session the user's current one, and creates it if it does not exist. An empty id clears the current session.
func (k *Service) Switch(ctx context.Context, v Viewer, id string) (s Session, created bool, err error) {
	if err := k.CheckEnabled(v.Namespace); err != nil {
		return Session{}, false, err
	}
	return k.Store.Switch(ctx, v, id, k.Now())
}
