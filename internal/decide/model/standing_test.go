package model

import (
	"strings"
	"testing"
	"time"

	"github.com/memsidecar/memsidecar/internal/decide"
	"github.com/memsidecar/memsidecar/internal/memory"
)

// TestStandingIsRead: the class that a model gives, as it is written, and none when there is no such class.
func TestStandingIsRead(t *testing.T) {
	in := decide.Input{Transcript: decide.Transcript{
		Speaker: "ann", Location: time.UTC,
		Dialogue: memory.Dialogue{Messages: []memory.Message{{Role: memory.RoleUser, Speaker: "ann", Content: "I'm allergic to nuts", Time: time.Now()}}},
	}}
	for given, want := range map[string]memory.StandingClass{
		`"safety"`: memory.StandingSafety, `"Style "`: memory.StandingStyle, `"address"`: memory.StandingAddress, `""`: "", `"always"`: "", `null`: "",
		`true`: "",
	} {
		r := reader{in: in, page: page{shown: []bool{true}}}
		found, err := r.read(`{"ops":[{"op":"add","text":"The user is allergic to nuts.","from":["m0"],"standing":` + given + `}]}`)
		if err != nil || len(found.Ops) != 1 || found.Ops[0].Statement.Standing != want {
			t.Errorf("%s: %+v, %v", given, found, err)
		}
	}
	for _, class := range memory.StandingClasses() {
		if !strings.Contains(constantPart, `"`+string(class)+`"`) {
			t.Errorf("the instructions do not name %q", class)
		}
	}
}
