package config

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/memsidecar/memsidecar/internal/digest"
	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/retrieve"
	"github.com/memsidecar/memsidecar/internal/session"
)

// outside says what to do about a value that its field's tags do not allow, or "".
func outside(v reflect.Value, tags reflect.StructTag) string {
	inside := true
	if allowed, ok := tags.Lookup("oneof"); ok {
		inside = slices.Contains(strings.Fields(allowed), v.String())
	}
	if lowest, ok := tags.Lookup("min"); ok {
		x := v.Convert(reflect.TypeFor[float64]()).Float()
		inside = limit(lowest) <= x && x <= limit(tags.Get("max")) // which NaN is not
	}
	if inside {
		return ""
	}
	return "use " + allowedBy(tags)
}

// limit is a number, or a duration in its own unit. The tests read all limits there are.
func limit(text string) float64 {
	if d, err := time.ParseDuration(text); err == nil {
		return float64(d)
	}
	x, err := strconv.ParseFloat(text, 64)
	if err != nil {
		panic(err)
	}
	return x
}

// allowedBy says which values a field's tags allow, or "".
func allowedBy(tags reflect.StructTag) string {
	if allowed, ok := tags.Lookup("oneof"); ok {
		words := strings.Fields(allowed)
		last := len(words) - 1
		return strings.Join(words[:last], ", ") + " or " + words[last]
	}
	if lowest, ok := tags.Lookup("min"); ok {
		return lowest + " to " + tags.Get("max")
	}
	return ""
}

var baseLanguage = regexp.MustCompile(`^[a-z]{2,8}$`)

const (
	notBaseLanguage = "is not a base language"
	baseLanguageFix = `use the code alone, in small letters, such as "zh"`
)

// validate notes what no tag can say. What is known to be wrong already is left alone.
func validate(c Config, from origins, bad *problems) {
	known := slices.Clone(*bad)
	check := func(key, problem, fix string) {
		if problem != "" && !known.about(key) {
			bad.add(key, from.of(key), problem, fix)
		}
	}
	check("listen", listenProblem(c.Listen), "use host:port, such as 127.0.0.1:7420")
	switch {
	case c.DataDir == "" && from.of("data_dir") == fromDefault:
		check("data_dir", "cannot be guessed, because the environment names no home folder", "set it")
	case strings.TrimSpace(c.DataDir) == "":
		check("data_dir", "is empty", "name a folder")
	case c.DataDir[0] == '~':
		check("data_dir", "begins with ~, which only a shell knows", "write the home folder out")
	}
	if _, err := time.LoadLocation(c.TimeZone); err != nil || c.TimeZone == "" {
		check("time_zone", fmt.Sprintf("is %q, which is not a known time zone", c.TimeZone),
			"use an IANA name, such as Asia/Shanghai, UTC or Local")
	}
	for _, language := range slices.Sorted(maps.Keys(c.Retrieval.Prompts)) {
		key := "retrieval.prompts." + language
		if !baseLanguage.MatchString(language) {
			check(key, notBaseLanguage, baseLanguageFix)
			continue
		}
		alone := retrieve.DefaultPrompts()
		alone[language] = c.Retrieval.Prompts[language]
		check(key, alone.Problem(), "write them")
	}
	for _, language := range slices.Sorted(maps.Keys(c.Session.Wordings)) {
		key := "session.wordings." + language
		if !baseLanguage.MatchString(language) {
			check(key, notBaseLanguage, baseLanguageFix)
			continue
		}
		alone := session.DefaultWordings()
		alone[language] = c.Session.Wordings[language]
		check(key, alone.Problem(), "write them")
	}
	validateDigest(c.Digest, check)
	for i, n := range c.Namespaces {
		key := fmt.Sprintf("namespaces[%d]", i)
		name, _ := strings.CutSuffix(n.Name, "/*")
		if problems := (memory.Scope{Namespace: name}).Validate("name", false); n.Name != "*" && len(problems) > 0 {
			check(key+".name", problems[0].Problem, "name a namespace, or all below one as a/b/*")
		}
		if every := n.MemorizeEvery; every != nil && (*every < 0 || *every > 1000) {
			check(key+".memorize_every", fmt.Sprintf("is %d", *every), "use 0 to 1000")
		}
		if retention := n.HistoryRetention; retention != nil && *retention < 0 {
			check(key+".history_retention", "is negative", "use 0 to keep messages for ever, or a duration")
		}
	}
	if q := c.Queue; q.BackoffMin > q.BackoffMax && !known.about("queue.backoff_max") {
		check("queue.backoff_min", fmt.Sprintf("is %s, longer than queue.backoff_max, %s (from %s)", durationText(q.BackoffMin),
			durationText(q.BackoffMax), from.of("queue.backoff_max")), "make it shorter, or that longer")
	}
	for _, err := range unjoined(c.Rules.Validate()) {
		field, problem, _ := strings.Cut(err.Error(), " ")
		problem, fix, ok := strings.Cut(problem, ": ")
		if !ok {
			fix = "correct it"
		}
		check("rules."+field, problem, fix)
	}
}

func validateDigest(d Digest, check func(key, problem, fix string)) {
	for _, language := range slices.Sorted(maps.Keys(d.Templates)) {
		key := "digest.templates." + language
		if !baseLanguage.MatchString(language) {
			check(key, notBaseLanguage, baseLanguageFix)
			continue
		}
		alone := digest.DefaultTemplates()
		alone[language] = d.Templates[language]
		check(key, alone.Problem(), "correct it")
	}
	if dir := d.ExportDir; dir != "" && (strings.TrimSpace(dir) == "" || dir[0] == '~') {
		check("digest.export_dir", "begins with ~, which only a shell knows, or is blank", "write the folder out")
	}
}

func listenProblem(address string) string {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Sprintf("is %q", address)
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return fmt.Sprintf("is %q, whose port is not 0 to 65535", address)
	}
	return ""
}

// unjoined is the errors that errors.Join put together.
func unjoined(err error) []error {
	var joined interface{ Unwrap() []error }
	if errors.As(err, &joined) {
		return joined.Unwrap()
	}
	if err == nil {
		return nil
	}
	return []error{err}
}
