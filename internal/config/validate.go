package config

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/memsidecar/memsidecar/internal/digest"
	"github.com/memsidecar/memsidecar/internal/lang/redact"
	"github.com/memsidecar/memsidecar/internal/manage/retention"
	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/retrieve"
	"github.com/memsidecar/memsidecar/internal/session"
)

// outside describes how to correct a value that the tags do not allow; "" when the value is allowed.
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

// limit parses a limit: a number, or a duration with its unit. A test parses all limits.
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

// allowedBy describes the values that the tags allow, or "".
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

// validate checks what tags cannot express. It skips keys that have a problem already.
func validate(c Config, from origins, bad *problems) {
	known := slices.Clone(*bad)
	check := func(key, problem, fix string) {
		if problem != "" && !known.about(key) {
			bad.add(key, from.of(key), problem, fix)
		}
	}
	c.validateAccess(check)
	c.HTTP.validate(check)
	c.API.validate(check, c.exposure)
	c.OTel.validate(check)
	c.Encryption.validate(check)
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
	checkWordings(check, "retrieval.prompts.", c.Retrieval.Prompts, func(language string, prompt retrieve.Prompt) string {
		alone := retrieve.DefaultPrompts()
		alone[language] = prompt
		return alone.Problem()
	})
	checkWordings(check, "session.wordings.", c.Session.Wordings, func(language string, wording session.Wording) string {
		alone := session.DefaultWordings()
		alone[language] = wording
		return alone.Problem()
	})
	checkWordings(check, "digest.templates.", c.Digest.Templates, func(language, template string) string {
		alone := digest.DefaultTemplates()
		alone[language] = template
		return alone.Problem()
	})
	if dir := c.Digest.ExportDir; dir != "" && (strings.TrimSpace(dir) == "" || dir[0] == '~') {
		check("digest.export_dir", "begins with ~, which only a shell knows, or is blank", "write the folder out")
	}
	if _, err := redact.New(c.Redact.Kinds); err != nil {
		check("redact.kinds", "has an unknown one", err.Error())
	}
	if c.History.Redact && !c.Redact.Enabled {
		check("history.redact", "is on, and redact.enabled is off", "switch both on, or this one off")
	}
	for i, s := range c.ShareGroups {
		s.validate(fmt.Sprintf("share_groups[%d]", i), check)
	}
	for i, n := range c.Namespaces {
		n.validate(fmt.Sprintf("namespaces[%d]", i), check)
	}
	checkModels(c, check)
	checkPrices(c.LLM.Prices, check)
	checkHalfLives(c.Memories.HalfLives, check)
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

// checkWordings checks texts by language.
func checkWordings[T any, M ~map[string]T](
	check func(key, problem, fix string),
	below string,
	texts M,
	problem func(language string, text T) string,
) {
	for _, language := range slices.Sorted(maps.Keys(texts)) {
		if !baseLanguage.MatchString(language) {
			check(below+language, "is not a base language", `use the code alone, in small letters, such as "zh"`)
			continue
		}
		check(below+language, problem(language, texts[language]), "write them")
	}
}

// checkHalfLives checks the half-lives of kinds.
func checkHalfLives(halfLives retention.HalfLives, check func(key, problem, fix string)) {
	for _, kind := range slices.Sorted(maps.Keys(halfLives)) {
		key := "memories.half_lives." + string(kind)
		if !kind.Valid() {
			check(key, "is not a kind of memories", fmt.Sprintf("use one of %v", memory.Kinds()))
		} else if d := halfLives[kind]; d < time.Hour || d > 876000*time.Hour {
			check(key, "is "+durationText(d), "use 1h to 876000h")
		}
	}
}

// validate checks an entry of namespaces.
func (n Namespace) validate(key string, check func(key, problem, fix string)) {
	name, _ := strings.CutSuffix(n.Name, "/*")
	if problems := (memory.Scope{Namespace: name}).Validate("name", false); n.Name != "*" && len(problems) > 0 {
		check(key+".name", problems[0].Problem, "name a namespace, or all below one as a/b/*")
	}
	if every := n.MemorizeEvery; every != nil && (*every < 0 || *every > 1000) {
		check(key+".memorize_every", fmt.Sprintf("is %d", *every), "use 0 to 1000")
	}
	n.validateBudgets(key, check)
	n.validateQuotas(key, check)
	if retention := n.HistoryRetention; retention != nil && *retention < 0 {
		check(key+".history_retention", "is negative", "use 0 to keep messages for ever, or a duration")
	}
}

// validate checks an entry of share_groups. A mistake here would show memories in the wrong group.
func (s ShareGroup) validate(key string, check func(key, problem, fix string)) {
	if problems := (memory.Scope{Namespace: s.Namespace}).Normalize().Validate("namespace", false); len(problems) > 0 {
		check(key+".namespace", problems[0].Problem, "name one namespace, or leave it out for default")
	}
	if len(s.Channels) < 2 {
		check(
			key+".channels",
			fmt.Sprintf("names %d, with whom nobody can share", len(s.Channels)),
			"name two groups or more, by their channel_id",
		)
	}
	for i, channel := range s.Channels {
		at := fmt.Sprintf("%s.channels[%d]", key, i)
		switch problem := memory.IDProblem(channel); {
		case channel == "":
			check(at, "is empty", "name a group by its channel_id")
		case problem != "":
			check(at, problem, "name a group by its channel_id")
		case slices.Contains(s.Channels[:i], channel):
			check(at, fmt.Sprintf("is %q, which the list has already", channel), "remove it")
		}
	}
}

// unjoined returns the errors that errors.Join combined.
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
