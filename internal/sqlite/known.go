package sqlite

import (
	"regexp"
	"strings"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/memsidecar/memsidecar/internal/memory"
)

// known is what the writer need not read again of the sessions that are appended to, because nobody else changes them: reading one takes
// as long as storing what was said. It is as the transaction under way has it. It is forgotten, all of it, when something is undone,
// and when a statement changes one of the tables it was read from otherwise than by appending: prepare looks at each statement, so that no
// caller can forget to say so.
type known struct {
	sessions *simplelru.LRU[int64, *sessionRow] // by the row
	meant    *simplelru.LRU[meant, int64]       // rows of sessions by what a request says
	users    *simplelru.LRU[memory.User, int64] // rows of users

	trusted int // what is executed keeps this up to date itself
}

// meant is what a request says of the session that it means.
type meant struct {
	namespace, user, channel, session string // session is empty for the current one
}

const (
	// knownSessions and knownUsers are how many are remembered: 2 MB, when ids are short.
	knownSessions, knownUsers = 2048, 4096
	// knownNames and knownMetadata bound what one session may take: a larger one is read each time.
	knownNames, knownMetadata = 32, 1024
)

func newKnown() *known {
	return &known{sessions: lruOf[int64, *sessionRow](knownSessions), meant: lruOf[meant, int64](knownUsers), users: lruOf[memory.User, int64](knownUsers)}
}

func lruOf[K comparable, V any](size int) *simplelru.LRU[K, V] {
	lru, err := simplelru.NewLRU[K, V](size, nil)
	if err != nil {
		panic(err) // the size is not positive
	}
	return lru
}

// meantBy is what a request for the scope says. ok is false when it can mean no session that is there: nobody has no current one.
func meantBy(scope memory.Scope) (m meant, ok bool) {
	m = meant{namespace: scope.Namespace, user: scope.UserID, channel: channelKey(scope.Channel), session: scope.SessionID}
	return m, m.session != "" || scope.UserID != "" || scope.Channel.Kind == memory.ChannelGroup
}

// session is the session that a request for the scope means, or nil when it has to be read.
func (k *known) session(scope memory.Scope) *sessionRow {
	m, ok := meantBy(scope)
	if !ok {
		return nil
	}
	row, ok := k.meant.Get(m)
	if !ok {
		return nil
	}
	found, ok := k.sessions.Get(row)
	if !ok {
		return nil
	}
	s := *found
	return &s
}

// keep remembers the session that a request for the scope means, as it was saved.
func (k *known) keep(scope memory.Scope, saved *sessionRow) {
	if saved.participants > knownNames || len(saved.Agents) > knownNames || len(saved.Metadata) > knownMetadata {
		k.sessions.Remove(saved.row)
		return
	}
	s := *saved
	for _, t := range []*time.Time{&s.considerAt, &s.considerAfter, &s.summarizeAt} { // as the database has them
		*t = t.Truncate(time.Microsecond)
	}
	s.idle = s.idle.Truncate(time.Microsecond)
	k.sessions.Add(s.row, &s)
	if m, ok := meantBy(scope); ok {
		k.meant.Add(m, s.row)
	}
}

// forget forgets everything.
func (k *known) forget() {
	k.trusted = 0
	k.sessions.Purge()
	k.meant.Purge()
	k.users.Purge()
}

// trust says that what is executed until the returned function is called keeps what is known up to date.
func (k *known) trust() (end func()) {
	k.trusted++
	return func() { k.trusted-- }
}

// changes finds what a statement changes.
var changes = regexp.MustCompile(`(?is)^\s*(INSERT|REPLACE|UPDATE|DELETE)(?:\s+OR\s+\w+)?(?:\s+INTO|\s+FROM)?\s+(?:main\.)?"?(\w+)`)

// voidsKnown reports whether a statement may change what is known. What is no statement of a kind that is used here may.
func voidsKnown(query string) bool {
	verb, _, _ := strings.Cut(strings.Join(strings.Fields(query), " "), " ")
	switch strings.ToUpper(verb) {
	case "SELECT", "BEGIN", "COMMIT", "SAVEPOINT", "RELEASE":
		return false
	case "INSERT", "REPLACE", "UPDATE", "DELETE":
	default: // ROLLBACK, too
		return true
	}
	found := changes.FindStringSubmatch(query)
	if found == nil {
		return true
	}
	switch strings.ToLower(found[2]) {
	case "sessions", "session_participants", "session_agents", "current_sessions":
		return true
	case "users": // the rows of those that are there stay what they are
		return !strings.EqualFold(found[1], "INSERT") && !strings.EqualFold(found[1], "UPDATE")
	}
	return false
}
