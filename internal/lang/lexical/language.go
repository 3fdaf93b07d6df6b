package lexical

import (
	"strings"
	"unicode"
)

// Undetermined is the language of a text that tells none.
const Undetermined = "und"

// Language detects a text's main language, as a BCP 47 base language, from its scripts and commonest words: "zh", "en", "ja", "ko"; "ru",
// "uk", "th", "ar", "fa", "he", "el", "hi"; and "fr", "es", "pt", "de", "it", "nl", "vi" if two common words or a letter of the language
// are in the text. Chinese with English words in it is "zh", and so is Japanese written without kana. Latin text without any sign of a
// language is "en" if it is plain ASCII ("pizza"), else Undetermined.
func Language(text string) string {
	language, _ := detect(text)
	return language
}

// LanguageOr is like Language, but returns the fallback for a text without any sign of a language.
func LanguageOr(text, fallback string) string {
	if language, certain := detect(text); certain {
		return language
	}
	return fallback
}

func detect(text string) (language string, certain bool) {
	var n scripts
	n.count(text)
	cjk := n.han + n.hiragana + n.katakana + n.hangul
	latin := 0
	if n.words > 0 {
		latin = n.words + 2*n.english
	}
	switch other, most := n.other(); {
	case most > cjk && most > n.letters:
		return other, true
	case cjk == 0 && n.words == 0:
		return Undetermined, false
	case cjk == 0:
		return n.latinLanguage()
	case n.words > 0 && n.eastAsianWeight() < latin:
		return "en", true
	case n.hangul >= n.han && n.hangul >= n.hiragana+n.katakana:
		return "ko", true
	case n.isJapanese():
		return "ja", true
	}
	return "zh", true
}

// scripts counts what a text is written in.
type scripts struct {
	han, hiragana, katakana, hangul int // characters
	no                              int // の among the hiragana, which Chinese borrows as an ornament
	function                        int // function characters among the Han
	chineseSubject                  bool
	opensEastAsian                  bool
	words, english                  int // Latin words; function words among them
	letters                         int // Latin letters
	hints                           [latinLanguages]int
	accented                        bool
	cyrillic, ukrainian             int
	arabic, persian                 int
	thai, hebrew, greek, devanagari int
}

func (n *scripts) count(text string) {
	trimmed := strings.TrimLeftFunc(text, func(r rune) bool { return !unicode.IsLetter(r) })
	n.chineseSubject = strings.HasPrefix(trimmed, "用户") || strings.HasPrefix(trimmed, "用戶")
	for _, r := range trimmed {
		n.opensEastAsian = isGram(r)
		break
	}
	wordStart := -1
	for i, r := range text {
		if isLatin(r) || wordStart >= 0 && (r == '\'' || r == '’') {
			if wordStart < 0 {
				wordStart = i
			}
			n.letters++
			n.accented = n.accented || r >= 0x80 && r != '’'
			continue
		}
		if wordStart >= 0 {
			n.word(text[wordStart:i])
			wordStart = -1
		}
		n.character(r)
	}
	if wordStart >= 0 {
		n.word(text[wordStart:])
	}
}

func isLatin(r rune) bool {
	if r < 0x80 {
		return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z'
	}
	return r < 0x1F00 && unicode.Is(unicode.Latin, r)
}

func (n *scripts) character(r rune) {
	switch {
	case r < 0x0370:
	case 0x4E00 <= r && r <= 0x9FFF, 0x3400 <= r && r <= 0x4DBF, 0x20000 <= r && r <= 0x323AF:
		n.han++
		if isFunctionChar(r) {
			n.function++
		}
	case 0x3041 <= r && r <= 0x309F:
		n.hiragana++
		if r == 'の' {
			n.no++
		}
	case 0x30A1 <= r && r <= 0x30FF && r != '・', 0xFF66 <= r && r <= 0xFF9D:
		n.katakana++
	case 0xAC00 <= r && r <= 0xD7A3, 0x1100 <= r && r <= 0x11FF, 0x3131 <= r && r <= 0x318E:
		n.hangul++
	case 0x0400 <= r && r <= 0x052F:
		n.cyrillic++
		if strings.ContainsRune("іїєґІЇЄҐ", r) {
			n.ukrainian++
		}
	case 0x0620 <= r && r <= 0x06FF:
		n.arabic++
		if strings.ContainsRune("پچژگکی", r) {
			n.persian++
		}
	case 0x0E01 <= r && r <= 0x0E5B:
		n.thai++
	case 0x05D0 <= r && r <= 0x05EA:
		n.hebrew++
	case 0x0370 <= r && r <= 0x03FF:
		n.greek++
	case 0x0900 <= r && r <= 0x097F:
		n.devanagari++
	}
}

// other is the language that the commonest of the remaining scripts is taken for, with its number of letters.
func (n *scripts) other() (language string, letters int) {
	for _, c := range [...]struct {
		language string
		letters  int
	}{{"ru", n.cyrillic}, {"ar", n.arabic}, {"th", n.thai}, {"he", n.hebrew}, {"el", n.greek}, {"hi", n.devanagari}} {
		if c.letters > letters {
			language, letters = c.language, c.letters
		}
	}
	switch {
	case language == "ru" && n.ukrainian > 0:
		language = "uk"
	case language == "ar" && n.persian > 0:
		language = "fa"
	}
	return language, letters
}

// eastAsianWeight is compared with the number of Latin words, in which function words count three times. A Chinese sentence with English
// names has Chinese function words, and the other way round.
func (n *scripts) eastAsianWeight() int {
	weight := n.han + 2*n.function + 2*(n.hiragana-n.no) + n.katakana + n.hangul
	if n.opensEastAsian {
		weight += 3
	}
	if n.chineseSubject {
		weight *= 4
	}
	return weight
}

// isJapanese: hiragana is in every Japanese sentence but hardly in Chinese; katakana also names Japanese things there.
func (n *scripts) isJapanese() bool {
	switch kana := n.hiragana + n.katakana; {
	case kana == 0, n.chineseSubject:
		return false
	case n.han == 0:
		return true
	default:
		return (n.hiragana > n.no || n.katakana > n.han) && 4*kana >= n.han
	}
}

// The Latin languages told apart; indexes of scripts.hints.
const (
	french = iota
	spanish
	portuguese
	german
	italian
	dutch
	vietnamese
	latinLanguages
)

// commonWords are common words of one Latin language each.
var commonWords = func() map[string]int {
	words := map[string]int{}
	for language, list := range [latinLanguages]string{
		french: "le les des une est je j'ai j'aime tu il elle nous vous pas du et dans pour avec sur mon ma mes c'est très qui où être suis " +
			"l'utilisateur aime bonjour merci",
		spanish:    "el los las y es yo mi pero muy con una por para qué hola usuario gusta está tiene del más soy estoy llamo vivo tengo",
		portuguese: "o os um uma não eu você meu minha com muito é do da em olá obrigado usuário tem são",
		german:     "der die das und ist ich nicht ein eine mit auf für wir sie habe mag zu mein meine nutzer hallo auch wohnt bin",
		italian:    "gli di che è sono non io ciao utente piace per della nel mio mia molto anche ho",
		dutch:      "het een ik niet van en dat voor met mijn gebruiker houdt maar ook zijn naar",
		vietnamese: "tôi là của và không có người một thích ở",
	} {
		for word := range strings.FieldsSeq(list) {
			words[word] = language
		}
	}
	return words
}()

func (n *scripts) word(w string) {
	n.words++
	if len(w) > 13 {
		return
	}
	w = strings.ToLower(strings.ReplaceAll(w, "’", "'"))
	if isFunctionWord(w) || strings.HasSuffix(w, "'s") {
		n.english++
	}
	if language, ok := commonWords[w]; ok {
		n.hints[language]++
	}
}

func (n *scripts) latinLanguage() (language string, certain bool) {
	best := 0
	for i := range n.hints {
		if n.hints[i] > n.hints[best] {
			best = i
		}
	}
	name := [latinLanguages]string{"fr", "es", "pt", "de", "it", "nl", "vi"}[best]
	switch found := n.hints[best]; {
	case found >= 2 && found > n.english, found == 1 && n.english == 0 && n.accented:
		return name, true
	case n.english > 0:
		return "en", true
	case !n.accented && found < 2:
		return "en", false
	}
	return Undetermined, false
}
