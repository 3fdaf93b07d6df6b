package sidecartest

import (
	"unicode/utf16"
)

// Marks is a text that occurs nowhere else, in two scripts.
const Marks = "Zyxwvutsrq魑魅魍魉"

// Forms are how the marks may be on the disk: as they were written, folded as the keyword index has them, in its pairs of
// characters, in two bytes a character, as JSON may escape them, and as names of files.
func Forms() []string {
	list := []string{"Zyxwvutsrq", "zyxwvutsrq", "ZYXWVUTSRQ", "xwvutsr", "魑魅", "魅魍", "魍魉", `\u9b51\u9b45`, "%5ayxwvutsrq", "%e9%ad%91"}
	for _, text := range []string{"Zyxwvutsrq", "魑魅"} {
		var little, big []byte
		for _, unit := range utf16.Encode([]rune(text)) {
			little, big = append(little, byte(unit), byte(unit>>8)), append(big, byte(unit>>8), byte(unit))
		}
		list = append(list, string(little), string(big))
	}
	return list
}
