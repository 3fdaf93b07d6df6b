package sqlstore

import (
	"context"
	"fmt"
	"reflect"
	"strings"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/session"
	"github.com/memsidecar/memsidecar/internal/sqlstore/sqldb"
)

// CompareCache compares every cached session with its rows. It returns how many there are and which differ.
func (s *Sessions) CompareCache(ctx context.Context, q sqldb.Querier) (cached int, different []string, err error) {
	for _, key := range s.cache.keys.Keys() {
		kind, id, _ := strings.Cut(key.channel, ":")
		scope := memory.Scope{
			Namespace: key.namespace, UserID: key.user, SessionID: key.session,
			Channel: memory.Channel{Kind: memory.ChannelKind(kind), ID: id},
		}
		got := s.cache.get(scope)
		if got == nil {
			continue
		}
		cached++
		var want *sessionRow
		if key.session == "" {
			want, err = currentSession(ctx, q, key.namespace, key.user, scope.Channel)
		} else {
			v := session.Viewer{Namespace: key.namespace, UserID: key.user, Channel: scope.Channel}
			want, err = sessionToWrite(ctx, q, v, key.session)
		}
		if err != nil {
			return cached, nil, err
		}
		for user, row := range got.users {
			stored, err := UserRow(ctx, q, memory.User{Namespace: key.namespace, ID: user})
			if err != nil {
				return cached, nil, err
			}
			if stored != row {
				different = append(different, fmt.Sprintf("%+v: user %q has row %d, cached %d", key, user, stored, row))
			}
		}
		if want != nil {
			want.users = got.users
		}
		if !reflect.DeepEqual(got, want) { //nolint:govet // the error in it is nil in both
			different = append(different, fmt.Sprintf("%+v: cached\n%+v\nstored\n%+v", key, got, want))
		}
	}
	return cached, different, nil
}

// UserPages are the queries of [Users.List], each with the condition that an index must serve.
var UserPages = []struct{ Query, Search string }{
	{usersFromID, "(namespace=? AND user_id>?)"},
	{usersAfterID, "(namespace=? AND user_id>?)"},
	{usersByActivity, "(namespace=? AND (active_at,user_id)<(?,?))"},
}
