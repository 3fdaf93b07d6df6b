package rules

import (
	"slices"
	"testing"
)

// TestApart: what is said in one breath and is several things becomes several statements, of which one can be taken back alone.
func TestApart(t *testing.T) {
	r := newRules(t, Config{})
	for words, want := range map[string][]string{
		"我住在西安，对芒果过敏。":                                  {"用户住在西安", "用户对芒果过敏"},
		"我喜欢游泳，讨厌跑步，在银行上班。":                             {"用户喜欢游泳", "用户讨厌跑步", "用户在银行上班"},
		"我对猫过敏，所以不能养猫。":                                 {"用户对猫过敏，所以不能养猫"}, // the second rests on the first
		"我妈妈是老师，住在成都。":                                  {"用户的妈妈是老师，住在成都"}, // and this is not about the speaker
		"我在学画画，每天练半小时。":                                 {"用户在学画画，每天练半小时"},
		"I live in Porto and I'm allergic to shrimps.":  {"The user lives in Porto.", "The user is allergic to shrimps."},
		"My name is Ada and I'm glad to meet you":       {"The user's name is Ada."},
		"My wife and I live in Rome with my mother":     {"The user and their wife live in Rome with their mother."},
		"Today is the weekend and I plan to go fishing": {"On 2026-03-04 (Wednesday) the user plans to go fishing."},
		"I work at a bank and I play the cello.":        {"The user works at a bank.", "The user plays the cello."},
		"I think my wife and I will go to Rome in May":  {"The user thinks they and their wife will go to Rome in May."},
	} {
		if _, s := consider(t, r, talk(words)); !slices.Equal(texts(s), want) {
			t.Errorf("%q: got %q, want %q", words, texts(s), want)
		}
	}
}
