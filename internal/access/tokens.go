package access

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

const (
	// tokenPrefix lets people and secret scanners recognise a token.
	tokenPrefix = "memsidecar_"
	tokenBytes  = 32
	hashPrefix  = "sha256:"
)

// NewToken returns a token of 256 random bits.
func NewToken() string {
	random := make([]byte, tokenBytes)
	_, _ = rand.Read(random) // never fails
	return tokenPrefix + base64.RawURLEncoding.EncodeToString(random)
}

// NewID returns an id for a token that was given none.
func NewID() string { return rand.Text()[:8] }

// Bearer returns the token in the values of an authorization header, or "". Several values are ignored, because a proxy may have added one.
func Bearer(authorization []string) string {
	if len(authorization) != 1 {
		return ""
	}
	scheme, token, _ := strings.Cut(authorization[0], " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}

type hash [sha256.Size]byte

func hashOf(token string) hash { return sha256.Sum256([]byte(token)) }

// Entry is a stored token.
type Entry struct {
	Grant
	hash hash
}

// NewEntry returns the stored form of a token.
func NewEntry(g Grant, token string) Entry { return Entry{g, hashOf(token)} }

// String returns the entry's line in the file:
//
//	bot sha256:6b86…  namespace=yantian/main access=write expires=2027-02-19T00:00:00Z
func (e Entry) String() string {
	line := fmt.Sprintf("%s %s%s namespace=%s access=%s", e.ID, hashPrefix, hex.EncodeToString(e.hash[:]), e.Namespace, e.Level)
	if !e.Expires.IsZero() {
		line += " expires=" + e.Expires.UTC().Format(time.RFC3339)
	}
	return line
}

var idPattern = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)

// idProblem returns what is wrong with a token's id, or "".
func idProblem(id string) string {
	if !idPattern.MatchString(id) {
		return `must be 1 to 64 letters, digits, ".", "_" or "-"`
	}
	return ""
}

// Check returns what is wrong with a grant.
func (g Grant) Check() error {
	if problem := idProblem(g.ID); problem != "" {
		return fmt.Errorf("the id %.80q %s", g.ID, problem)
	}
	if problem := namespaceProblem(g.Namespace); problem != "" {
		return fmt.Errorf("the namespace %.80q %s", g.Namespace, problem)
	}
	return nil
}

// parseEntry parses a line of the file.
func parseEntry(line string) (e Entry, err error) {
	fields := strings.Fields(line)
	e.ID, e.Level = fields[0], Write
	if len(fields) < 2 || !strings.HasPrefix(fields[1], hashPrefix) {
		return e, errors.New("the second word must be sha256:HASH; create entries with: memsidecar token create")
	}
	digest, err := hex.DecodeString(strings.TrimPrefix(fields[1], hashPrefix))
	if err != nil || len(digest) != len(e.hash) {
		return e, fmt.Errorf("%s must be followed by 64 hexadecimal digits", hashPrefix)
	}
	e.hash = hash(digest)
	var seen []string
	for _, field := range fields[2:] {
		key, value, _ := strings.Cut(field, "=")
		if slices.Contains(seen, key) {
			return e, fmt.Errorf("%s is given twice", key)
		}
		seen = append(seen, key)
		switch key {
		case "namespace":
			e.Namespace = value
		case "access":
			e.Level, err = ParseLevel(value)
		case "expires":
			e.Expires, err = time.Parse(time.RFC3339, value)
		default:
			err = fmt.Errorf("%.80q is unknown: use namespace=…, access=… and expires=… after the hash", field)
		}
		if err != nil {
			return e, err
		}
	}
	return e, e.Check()
}

// parse parses a file: one entry a line, empty lines, and comments that begin with #. It reports all errors.
func parse(text string) ([]Entry, error) {
	var entries []Entry
	var wrong []error
	number := 0
	for line := range strings.Lines(text) {
		number++
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		e, err := parseEntry(line)
		for _, other := range entries {
			switch {
			case err != nil:
			case other.ID == e.ID:
				err = fmt.Errorf("two tokens have the id %s", e.ID)
			case other.hash == e.hash:
				err = fmt.Errorf("%s and %s are the same token", other.ID, e.ID)
			}
		}
		if err != nil {
			wrong = append(wrong, fmt.Errorf("line %d: %w", number, err))
			continue
		}
		entries = append(entries, e)
	}
	return entries, errors.Join(wrong...)
}

// find returns the entry of a token in constant time: every hash is compared.
func find(entries []Entry, token string) (e Entry, ok bool) {
	wanted, at := hashOf(token), -1
	for i := range entries {
		at = subtle.ConstantTimeSelect(subtle.ConstantTimeCompare(entries[i].hash[:], wanted[:]), i, at)
	}
	if at < 0 {
		return e, false
	}
	return entries[at], true
}
