package rules

import (
	"unicode"

	"github.com/memsidecar/memsidecar/internal/lang"
)

// Languages as BCP 47 base languages.
const (
	chinese  = "zh"
	english  = "en"
	japanese = "ja"
	korean   = "ko"
	unknown  = "und"
)

var englishWords = lang.Set("i my the is are you and of have with for not this that like love it he she they we what how am was to from don't " +
	"i'm in on at do can would yes thanks please hello hi ok okay your me be been has had will just so about")

var foreignWords = lang.Set("el la los las que de del y mi mis je le les est et mon ma und der das ist mein ich não eu minha meu che sono mio il gli " +
	"una un une para por con en es soy estoy muy gusta llamo vivo tengo suis j'ai j'aime dans avec pour pas nicht ein eine habe bin auf mit für io ho di per yo tu está")

// languageOf tells the language of a text by its scripts and, for Latin script, by common words; fallback is for texts that
// show nothing.
func languageOf(p piece, fallback string) string {
	var han, kana, hangul, latin, other int
	for _, r := range p.raw {
		switch {
		case r < 0x80:
			if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
				latin++
			}
		case unicode.In(r, unicode.Hiragana, unicode.Katakana):
			kana++
		case unicode.Is(unicode.Hangul, r):
			hangul++
		case unicode.Is(unicode.Han, r):
			han++
		case unicode.Is(unicode.Latin, r):
			latin++
		case unicode.IsLetter(r):
			other++
		}
	}
	native, foreign := 0, 0
	for _, w := range p.words {
		if englishWords[w.norm] {
			native++
		}
		if foreignWords[w.norm] {
			foreign++
		}
	}
	switch {
	case kana > 1 && kana*3 > han:
		return japanese
	case hangul > 1 && hangul >= han:
		return korean
	// A Chinese sentence with English terms stays Chinese; an English sentence with a Chinese name stays English.
	case han > 0 && (han*4 >= latin || native < 2):
		return chinese
	case other > latin:
		return unknown
	case foreign > native:
		return unknown
	case native > 0:
		return english
	case latin > 0 && fallback == "":
		return english
	case fallback != "":
		return fallback
	}
	return unknown
}
