// Package lazyregexp compiles regular expressions on their first use. The program has about 600, and each of its commands
// would otherwise compile all of them when it starts.
package lazyregexp

import (
	"fmt"
	"regexp"
	"sync"
)

// Regexp is a regular expression of the program. Its methods are those of regexp.Regexp; they panic when it is invalid.
type Regexp struct {
	text    string
	compile func() *regexp.Regexp
}

// all has the expressions for Check.
var all struct {
	sync.Mutex
	list []*Regexp
}

// New returns the regular expression in text. It is for variables of packages only, because every expression is kept for Check.
func New(text string) *Regexp {
	r := &Regexp{text: text, compile: sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(text) })}
	all.Lock()
	defer all.Unlock()
	all.list = append(all.list, r)
	return r
}

// Check returns how many expressions the linked packages have, and an error for each that is invalid.
func Check() (n int, invalid []error) {
	all.Lock()
	defer all.Unlock()
	for _, r := range all.list {
		if _, err := regexp.Compile(r.text); err != nil {
			invalid = append(invalid, fmt.Errorf("%s: %w", r.text, err))
		}
	}
	return len(all.list), invalid
}

// FindAllIndex is that of regexp.Regexp.
func (r *Regexp) FindAllIndex(b []byte, n int) [][]int {
	return r.compile().FindAllIndex(b, n)
}

// SubexpIndex is that of regexp.Regexp.
func (r *Regexp) SubexpIndex(name string) int {
	return r.compile().SubexpIndex(name)
}

// FindAllString is that of regexp.Regexp.
func (r *Regexp) FindAllString(s string, n int) []string {
	return r.compile().FindAllString(s, n)
}

// FindAllStringIndex is that of regexp.Regexp.
func (r *Regexp) FindAllStringIndex(s string, n int) [][]int {
	return r.compile().FindAllStringIndex(s, n)
}

// FindAllStringSubmatch is that of regexp.Regexp.
func (r *Regexp) FindAllStringSubmatch(s string, n int) [][]string {
	return r.compile().FindAllStringSubmatch(s, n)
}

// FindAllStringSubmatchIndex is that of regexp.Regexp.
func (r *Regexp) FindAllStringSubmatchIndex(s string, n int) [][]int {
	return r.compile().FindAllStringSubmatchIndex(s, n)
}

// FindAllSubmatchIndex is that of regexp.Regexp.
func (r *Regexp) FindAllSubmatchIndex(b []byte, n int) [][]int {
	return r.compile().FindAllSubmatchIndex(b, n)
}

// FindString is that of regexp.Regexp.
func (r *Regexp) FindString(s string) string {
	return r.compile().FindString(s)
}

// FindStringIndex is that of regexp.Regexp.
func (r *Regexp) FindStringIndex(s string) []int {
	return r.compile().FindStringIndex(s)
}

// FindStringSubmatch is that of regexp.Regexp.
func (r *Regexp) FindStringSubmatch(s string) []string {
	return r.compile().FindStringSubmatch(s)
}

// FindStringSubmatchIndex is that of regexp.Regexp.
func (r *Regexp) FindStringSubmatchIndex(s string) []int {
	return r.compile().FindStringSubmatchIndex(s)
}

// MatchString is that of regexp.Regexp.
func (r *Regexp) MatchString(s string) bool {
	return r.compile().MatchString(s)
}

// ReplaceAllString is that of regexp.Regexp.
func (r *Regexp) ReplaceAllString(s, with string) string {
	return r.compile().ReplaceAllString(s, with)
}

// ReplaceAllStringFunc is that of regexp.Regexp.
func (r *Regexp) ReplaceAllStringFunc(s string, with func(string) string) string {
	return r.compile().ReplaceAllStringFunc(s, with)
}

// Split is that of regexp.Regexp.
func (r *Regexp) Split(s string, n int) []string {
	return r.compile().Split(s, n)
}
