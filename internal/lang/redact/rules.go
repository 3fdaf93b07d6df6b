package redact

import (
	_ "embed"
	"encoding/json"
	"math"
	"regexp"
	"strings"
	"sync"
)

// gitleaksRules are formats of keys that gitleaks keeps: data, with its source and licence in it.
//
//go:embed data/gitleaks.json
var gitleaksRules []byte

// rule is a format of keys: a keyword that every text with such a key has, a pattern, and how much the key varies at least.
type rule struct {
	ID       string   `json:"id"`
	Keywords []string `json:"keywords"`
	Regex    string   `json:"regex"`
	Entropy  float64  `json:"entropy"`
	Group    int      `json:"group"`
	Allow    []string `json:"allow"` // what is no key all the same

	compile sync.Once
	pattern *regexp.Regexp
	allowed []*regexp.Regexp
}

// ruleSet is all rules, and which of them a keyword is of.
type ruleSet struct {
	Allow []string `json:"allow"`
	Rules []*rule  `json:"rules"`

	of      map[string][]*rule
	keys    phrases
	compile sync.Once
	allowed []*regexp.Regexp
}

var rules = sync.OnceValue(func() *ruleSet {
	set := &ruleSet{of: map[string][]*rule{}}
	if err := json.Unmarshal(gitleaksRules, set); err != nil {
		panic("data/gitleaks.json: " + err.Error())
	}
	for _, r := range set.Rules {
		if r.ID == "jwt" || r.ID == "private-key" { // webToken and pemBegin find them, also in sentences and cut off
			continue
		}
		for _, keyword := range r.Keywords {
			set.of[keyword] = append(set.of[keyword], r)
			set.keys.add(phrase{text: keyword})
		}
	}
	return set
})

// ruleEnd is how rules of gitleaks say that a key ends: before a blank, a quotation mark or the end. In sentences other signs follow.
const ruleEnd = "(?:[\\x60'\"\\s;]|\\\\[nr]|$)"

func compileAll(list []string) (all []*regexp.Regexp) {
	for _, pattern := range list {
		all = append(all, regexp.MustCompile(pattern))
	}
	return all
}

// ready compiles the rule's pattern when a text first has its keyword: most are never needed.
func (r *rule) ready() {
	r.compile.Do(func() {
		source := r.Regex
		if secret, ok := strings.CutSuffix(source, ruleEnd); ok {
			source = secret + `(?:[^0-9A-Za-z_]|$)`
		}
		r.pattern, r.allowed = regexp.MustCompile(source), compileAll(r.Allow)
	})
}

// How much of a text around a keyword a rule looks at.
const (
	ruleBefore  = 64
	ruleAfter   = 160
	longestRule = 2 << 10 // of a key that goes on
)

// ruleWork is how many bytes rules look at for every byte of a text, at most. Only a text that is made of their keywords needs more.
const ruleWork = 4

// looking is how far each rule has looked at a text, and at how many bytes all of them.
type looking struct {
	text  string
	until map[*rule]int
	work  int
}

// byRules returns the keys that rules find. It searches only near the rules' keywords.
func byRules(text, lower string) (found []span) {
	set := rules()
	l := &looking{text: text, until: map[*rule]int{}}
	for at := 0; at+1 < len(lower) && l.work <= ruleWork*len(text)+64<<10; at++ {
		index := indexOf(lower[at:])
		if set.keys.known[index/64]&(1<<(index%64)) == 0 {
			continue
		}
		for _, key := range set.keys.by[index] {
			if !strings.HasPrefix(lower[at:], key.text) {
				continue
			}
			for _, r := range set.of[key.text] {
				if from, end, ok := l.around(r, at, len(key.text)); ok {
					found = append(found, set.find(r, text, from, end)...)
				}
			}
		}
	}
	return found
}

// around is what a rule is to look at for a keyword, unless it has.
func (l *looking) around(r *rule, at, length int) (from, end int, ok bool) {
	until := l.until[r]
	from, end = max(0, at-ruleBefore, until), min(len(l.text), at+ruleAfter)
	for end < len(l.text) && end-at < longestRule && l.text[end] > ' ' && l.text[end] < 0x7F {
		end++
	}
	if until >= end || until > at+length {
		return 0, 0, false
	}
	for from > 0 && l.text[from-1] > ' ' && l.text[from-1] < 0x7F && at-from < 2*ruleBefore {
		from--
	}
	l.until[r] = end
	l.work += end - from
	return from, end, true
}

// find returns the keys of a rule in a part of a text.
func (s *ruleSet) find(r *rule, text string, from, end int) (found []span) {
	if end-from > 0 && !hasRun(text[from:end], 10) {
		return nil
	}
	r.ready()
	s.compile.Do(func() { s.allowed = compileAll(s.Allow) })
	kind := APIKey
	if strings.HasPrefix(r.ID, "jwt") || strings.HasPrefix(r.ID, "curl-auth") {
		kind = Token
	}
	for _, at := range r.pattern.FindAllStringSubmatchIndex(text[from:end], 16) {
		group := r.Group
		for g := 1; group == 0 && g < len(at)/2; g++ {
			if at[2*g] >= 0 && at[2*g] < at[2*g+1] {
				group = g
			}
		}
		secret := text[from+at[2*group] : from+at[2*group+1]]
		if entropy(secret) < r.Entropy || matchesAny(s.allowed, secret) || matchesAny(r.allowed, secret) {
			continue
		}
		found = append(found, span{start: from + at[2*group], end: from + at[2*group+1], kind: kind})
	}
	return found
}

func matchesAny(patterns []*regexp.Regexp, text string) bool {
	for _, pattern := range patterns {
		if pattern.MatchString(text) {
			return true
		}
	}
	return false
}

// entropy is Shannon's, in bits a byte: how much a text varies.
func entropy(text string) (bits float64) {
	var counts [256]int
	for i := range len(text) {
		counts[text[i]]++
	}
	for _, n := range counts {
		if n > 0 {
			p := float64(n) / float64(len(text))
			bits -= p * math.Log2(p)
		}
	}
	return bits
}
