package sidecartest

import (
	"unicode/utf16"
)

// Marks is a text that occurs nowhere else, in two scripts.
const Marks = "Zyxwvutsrq魑魅魍魉"

// Forms returns the forms that [Marks] may have on the disk: as it was written, folded and in pairs of characters as in the keyword
// index, in UTF-16, escaped in JSON, and in file names.
func Forms() []string {
	list := []string{"Zyxwvutsrq", "zyxwvutsrq", "ZYXWVUTSRQ", "xwvutsr", "魑魅", "魅魍", "魍魉", `\u9b51\u9b45`, "%5ayxwvutsrq", "%e9%ad%91"}
	for _, text := range []string{"Zyxwvutsrq", "魑魅"} {
		var little, big []byte
		for _, unit := range utf16.Encode([]rune(text)) {
			little, big = append(little, byte(unit), byte(unit>>8)), append(big, byte(unit>>8), byte(unit)) //nolint:gosec // the two bytes of a code unit
		}
		list = append(list, string(little), string(big))
	}
	return list
}
