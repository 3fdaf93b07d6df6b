package sqlstore

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/sqlstore/sqldb"
)

// sessionCache keeps the sessions that are appended to, because reading one takes as long as storing a dialogue. It is used only in
// transactions, and holds sessions as the transaction in progress sees them.
type sessionCache struct {
	mu       sync.Mutex
	sessions *simplelru.LRU[int64, *sessionRow] // by row
	keys     *simplelru.LRU[sessionKey, int64]  // rows by what a request names
}

// sessionKey is what a request says about its session.
type sessionKey struct {
	namespace, user, channel, session string // session is empty for the current one
}

const (
	// cachedSessions and cachedSessionKeys are how many are kept: 2 MB when ids are short.
	cachedSessions, cachedSessionKeys = 2048, 4096
	// cachedNames and cachedMetadata bound the names and the bytes of metadata of one session: a larger one is read each time.
	cachedNames, cachedMetadata = 32, 1024
)

func newSessionCache() *sessionCache {
	return &sessionCache{sessions: lruOf[int64, *sessionRow](cachedSessions), keys: lruOf[sessionKey, int64](cachedSessionKeys)}
}

func lruOf[K comparable, V any](size int) *simplelru.LRU[K, V] {
	lru, err := simplelru.NewLRU[K, V](size, nil)
	if err != nil {
		panic(err) // the size is not positive
	}
	return lru
}

// keyOf is the key of a request for the scope. ok is false when no existing session can be meant: without a user and a group there is no
// current one.
func keyOf(scope memory.Scope) (key sessionKey, ok bool) {
	key = sessionKey{namespace: scope.Namespace, user: scope.UserID, channel: channelKey(scope.Channel), session: scope.SessionID}
	return key, key.session != "" || scope.UserID != "" || scope.Channel.Kind == memory.ChannelGroup
}

// get is the session that a request for the scope means, or nil when it must be read.
func (c *sessionCache) get(scope memory.Scope) *sessionRow {
	key, ok := keyOf(scope)
	if !ok {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	row, ok := c.keys.Get(key)
	if !ok {
		return nil
	}
	found, ok := c.sessions.Get(row)
	if !ok {
		return nil
	}
	s := *found
	return &s
}

// put keeps the session that a request for the scope means, as it was saved in the transaction.
func (c *sessionCache) put(tx sqldb.Tx, scope memory.Scope, saved *sessionRow, users map[string]int64) {
	if saved.participants > cachedNames || len(saved.Agents) > cachedNames || len(saved.Metadata) > cachedMetadata {
		c.drop(saved.row)
		return
	}
	s := *saved
	for _, t := range []*time.Time{&s.considerAt, &s.considerAfter, &s.summarizeAt} { // as the database has them
		*t = t.Truncate(time.Microsecond)
	}
	s.idle = s.idle.Truncate(time.Microsecond)
	s.users = withParticipants(saved, users)
	c.mu.Lock()
	c.sessions.Add(s.row, &s)
	if key, ok := keyOf(scope); ok {
		c.keys.Add(key, s.row)
	}
	c.mu.Unlock()
	tx.OnRollback(c.clear)
}

// withParticipants adds the rows of users who take part in the session to those that it has. While users take part their rows stay.
func withParticipants(s *sessionRow, users map[string]int64) map[string]int64 {
	all, copied := s.users, false
	for id, row := range users {
		if _, ok := all[id]; ok || !slices.Contains(s.Participants, id) {
			continue
		}
		if !copied { // others may read the map
			if all, copied = maps.Clone(all), true; all == nil {
				all = map[string]int64{}
			}
		}
		all[id] = row
	}
	return all
}

// drop removes a session.
func (c *sessionCache) drop(row int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sessions.Remove(row)
}

// clear removes everything.
func (c *sessionCache) clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sessions.Purge()
	c.keys.Purge()
}
