package server_test

import (
	"strings"
	"testing"

	"github.com/memsidecar/memsidecar/internal/provider/providertest"
	"github.com/memsidecar/memsidecar/internal/testkit/sidecartest"
	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"
)

// summaryBy are settings by which a local server does the summary, and no model the decision.
func summaryBy(protocol string, p *providertest.Server) []string {
	return []string{
		"summary.provider=" + protocol, "summary.endpoint=" + p.URL, "summary.api_key=" + sidecartest.ProviderKey, "summary.model=m",
		"queue.backoff_min=10ms", "queue.backoff_max=20ms", "breaker.failures=1000",
	}
}

// TestMalformedAnswerNeverFailsAConsideration: Whatever the model answers, the dialogue is remembered or skipped. An answer that can be
// read counts as what it means. Otherwise rules decide, and the consideration says why.
func TestMalformedAnswerNeverFailsAConsideration(t *testing.T) {
	t.Parallel()
	const (
		fields = `"ids":[],"kind":"fact","importance":0.7,"about":"user","holds":"now","until":"","asked":false,"from":["m0"]`
		add    = `{"op":"add","text":"The user is allergic to peanuts.",` + fields + `}`
		model  = "openai/m"
		rules  = "rules"
		nobody = "" // nothing was worth remembering
	)
	list := func(ops ...string) string { return `{"ops":[` + strings.Join(ops, ",") + `]}` }
	change := func(from, to string) string { return list(strings.Replace(add, from, to, 1)) }
	p := providertest.Start(t, 1000)
	r := sidecartest.Serve(t, summaryBy("openai", p)...)
	for name, c := range map[string]struct{ answer, by string }{
		"as asked for":            {list(add), model},
		"importance missing":      {change(`"importance":0.7,`, ""), model},
		"importance in a word":    {change("0.7", `"high"`), model},
		"importance in percent":   {change("0.7", `"70%"`), model},
		"importance up to 10":     {change("0.7", "7"), model},
		"importance as a string":  {change("0.7", `"0.7"`), model},
		"an empty object":         {"{}", nobody},
		"an empty array":          {"[]", nobody},
		"null":                    {"null", nobody},
		"null as a string":        {`"null"`, nobody},
		"an empty list":           {list(), nobody},
		"ops as an object":        {`{"ops":` + add + `}`, model},
		"an op alone":             {add, model},
		"a bare list":             {"[" + add + "]", model},
		"a range of messages":     {change(`["m0"]`, `["m0-m2"]`), model},
		"unknown ids":             {change(`"ids":[]`, `"ids":["k7","mem_x"]`), model},
		"an update of nothing":    {list(strings.NewReplacer("add", "update", `"ids":[]`, `"ids":["k7"]`).Replace(add)), model},
		"all are updated":         {list(strings.NewReplacer("add", "update", `"ids":[]`, `"ids":["*"]`).Replace(add)), model},
		"unknown messages":        {change(`["m0"]`, `["m9"]`), model},
		"two objects":             {list() + "\nNo:\n" + list(add), model},
		"an update without text":  {list(`{"op":"update","ids":["k0"],"from":["m0"]}`), rules},
		"one of two without text": {list(`{"op":"update","ids":["k0"],"from":["m0"]}`, add), model},
		"kind unknown":            {change(`"fact"`, `"allergy"`), model},
		"until invalid":           {change(`"until":""`, `"until":"never"`), model},
		"prose":                   {"Sure! Here: " + list(add) + " Anything else?", model},
		"a fence":                 {"```json\n" + list(add) + "\n```", model},
		"a trailing comma":        {`{"ops":[` + add + `,],}`, model},
		"ids as numbers":          {change(`"ids":[]`, `"ids":[0]`), model},
		"messages as numbers":     {change(`["m0"]`, `[0]`), model},
		"wrong case":              {strings.NewReplacer("op", "Op", `"add"`, `"ADD"`, "m0", "M0").Replace(list(add)), model},
		"another word for add":    {change(`"add"`, `"create"`), model},
		"an unknown op":           {change(`"add"`, `"merge"`), rules},
		"half an answer":          {list(add, add)[:len(list(add))+20], model},
		"half an op":              {list(add)[:60], rules},
		"no JSON":                 {"I will remember that!", rules},
		"single quotes":           {"{'ops': []}", rules},
		"not a number":            {change("0.7", "NaN"), rules},
		"nothing but brackets":    {strings.Repeat("[", 5000), rules},
		"another one's object":    {`{"should_remember": true, "reason": "an allergy"}`, rules},
	} {
		p.Extraction(c.answer)
		got := r.Consider(t, sidecartest.Direct(name), sidecartest.Said("I am allergic to peanuts."))
		state := sidecartest.Remembered
		if c.by == nobody {
			state, c.by = memsidecarv1.ConsiderationState_CONSIDERATION_STATE_SKIPPED, model
		}
		if got.GetState() != state || got.GetDecidedBy() != c.by || (got.GetFallbackReason() != "") != (c.by == rules) || got.GetError() != "" {
			t.Errorf("%s: %v", name, got)
		}
		if c.by == rules && !strings.Contains(got.GetFallbackReason(), "cannot be used") {
			t.Errorf("%s: rules decided because %q", name, got.GetFallbackReason())
		}
		dropped := name == "one of two without text" || name == "half an answer"
		if (len(got.GetDroppedChanges()) > 0) != dropped {
			t.Errorf("%s: dropped %q", name, got.GetDroppedChanges())
		}
		want := []string{"The user is allergic to peanuts."} // in the model's words
		if c.by == rules {
			want = []string{"I am allergic to peanuts."}
		}
		if state != sidecartest.Remembered {
			want = nil
		}
		if texts := sidecartest.Texts(r.Memories(t, sidecartest.Direct(name))); strings.Join(texts, "|") != strings.Join(want, "|") {
			t.Errorf("%s: remembered %q, want %q", name, texts, want)
		}
	}
	for _, fault := range []providertest.Fault{providertest.Blocked, providertest.BadRequest, providertest.NoCandidates, providertest.BrokenJSON} {
		p.Fail(fault, providertest.Summary)
		got := r.Consider(t, sidecartest.Direct(string(fault)), sidecartest.Said("I am allergic to peanuts."))
		if got.GetState() != sidecartest.Remembered || got.GetDecidedBy() != rules || got.GetFallbackReason() == "" {
			t.Errorf("%s: %v", fault, got)
		}
	}
}

// TestOutcomeSaysWhatWasForgotten: A request to forget that matches nothing, and one that means everything, are fields of the outcome.
func TestOutcomeSaysWhatWasForgotten(t *testing.T) {
	t.Parallel()
	p := providertest.Start(t, 1000)
	r := sidecartest.Serve(t, summaryBy("gemini", p)...)
	u := sidecartest.Direct("u")
	p.Extraction(`{"ops":[{"op":"forget","ids":["k3"],"text":"the oboe","from":["m0"]}]}`)
	got := r.Consider(t, u, sidecartest.Said("Forget that I play the oboe."))
	if c := got.GetChanges(); len(c) != 1 || c[0].GetAction() != memsidecarv1.MemoryAction_MEMORY_ACTION_NOT_FOUND || c[0].GetMemoryId() != "" ||
		c[0].GetText() != "the oboe" || got.GetForgetEverything() {
		t.Errorf("nothing is meant: %v", got)
	}
	for _, text := range []string{"The user likes tea.", "The user lives in Porto."} {
		p.Extraction(`{"ops":[{"op":"add","text":"` + text + `","from":["m0"]}]}`)
		r.Consider(t, u, sidecartest.Said("I like tea and live in Porto."))
	}
	p.Extraction(`{"ops":[{"op":"forget","ids":["*"],"text":"everything","from":["m0"]}]}`)
	got = r.Consider(t, u, sidecartest.Said("Forget everything about me."))
	if !got.GetForgetEverything() || got.GetState() != sidecartest.Remembered || len(r.Memories(t, u)) != 0 {
		t.Errorf("everything is meant: %v, left %v", got, r.Memories(t, u))
	}
}
