package redact

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// format is one way in which people or programs write a secret.
type format struct {
	name     string
	value    func(*rand.Rand) string // returns a secret
	as       func(string) string     // how the text encodes the secret; nil: unchanged
	carriers []string                // texts; {} stands for the secret
}

// leakLength is how many consecutive characters of a secret are a leak.
const leakLength = 6

// leaks reports whether a text has six consecutive characters of a secret, or all of a shorter one, that its carrier lacks.
func leaks(text, secret, carrier string) bool {
	runes, text := []rune(secret), markers.ReplaceAllString(text, "\n")
	for i := 0; i+leakLength <= max(len(runes), leakLength); i++ {
		part := string(runes[i:min(i+leakLength, len(runes))])
		if strings.Contains(text, part) && !strings.Contains(carrier, part) {
			return true
		}
	}
	return false
}

// measureFormat counts the values of a format that leak after redaction. The example is the first redacted text with a leak.
func measureFormat(r *Redactor, f format, values int) (leaked int, example string) {
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(f.name))
	random := rand.New(rand.NewPCG(15, hash.Sum64()))
	for i := range values {
		secret := f.value(random)
		written := secret
		if f.as != nil {
			written = f.as(secret)
		}
		carrier := f.carriers[i%len(f.carriers)]
		text := r.Text(strings.ReplaceAll(carrier, "{}", written))
		if leaks(text, secret, carrier) || leaks(text, written, carrier) {
			leaked++
			if example == "" {
				example = fmt.Sprintf("%s -> %q", written, text)
			}
		}
	}
	return leaked, example
}

// table measures formats and fails for each with more leaks than allowed. -v prints all.
func table(t *testing.T, formats []format, allowed map[string]int) {
	t.Helper()
	r := all(t)
	total, kinds := 0, 0
	for _, f := range formats {
		leaked, example := measureFormat(r, f, formatValues)
		total += leaked
		if leaked > 0 {
			kinds++
		}
		t.Logf("%-52s %3d of %d", f.name, leaked, formatValues)
		if leaked > allowed[f.name] {
			t.Errorf("%s: %d of %d values leak, such as %s", f.name, leaked, formatValues, example)
		}
	}
	t.Logf("%d formats, %d leak; %d of %d values leak", len(formats), kinds, total, len(formats)*formatValues)
}

const (
	lowers   = "abcdefghijklmnopqrstuvwxyz"
	uppers   = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	decimals = "0123456789"
	alnum    = lowers + uppers + decimals
	hexes    = "0123456789abcdef"
	base32s  = uppers + "234567"
	base64s  = alnum + "+/"
	url64s   = alnum + "-_"
)

// of returns a maker of values: a prefix and some characters of an alphabet.
func of(prefix, alphabet string, length int) func(*rand.Rand) string {
	return func(r *rand.Rand) string { return prefix + pick(r, alphabet, length) }
}

func pick(r *rand.Rand, alphabet string, length int) string {
	runes := []rune(alphabet)
	made := make([]rune, length)
	for i := range made {
		made[i] = runes[r.IntN(len(runes))]
	}
	return string(made)
}

// between returns a maker of values whose length is between two limits.
func between(alphabet string, least, most int) func(*rand.Rand) string {
	return func(r *rand.Rand) string { return pick(r, alphabet, least+r.IntN(most-least+1)) }
}

var someWords = strings.Fields(`sunshine dragon coffee monkey summer winter purple tiger orange silver garden pepper rocket guitar
	falcon cookie banana shadow master thunder copper hunter willow marble`)

// chosen returns a password as people choose them: a word or two, digits, often a sign.
func chosen(r *rand.Rand) string {
	word := someWords[r.IntN(len(someWords))]
	if r.IntN(2) == 0 {
		word = strings.ToUpper(word[:1]) + word[1:]
	}
	switch r.IntN(4) {
	case 0:
		return word + pick(r, decimals, 2+r.IntN(3))
	case 1:
		return word + pick(r, decimals, 2) + pick(r, "!?#*", 1)
	case 2:
		return word + pick(r, "-_.", 1) + someWords[r.IntN(len(someWords))] + pick(r, decimals, 1+r.IntN(3))
	}
	return strings.NewReplacer("a", "4", "e", "3", "o", "0", "i", "1").Replace(word) + pick(r, decimals+uppers, 2)
}

// strong returns a password as programs generate them: letters, digits, and signs without a meaning in shells and quotes.
func strong(r *rand.Rand) string {
	return pick(r, lowers, 1) + pick(r, alnum+"!#%*-_+=?@^~", 8+r.IntN(9)) + pick(r, decimals, 1) + pick(r, uppers, 1)
}

// either returns a maker that uses one or the other maker.
func either(makers ...func(*rand.Rand) string) func(*rand.Rand) string {
	return func(r *rand.Rand) string { return makers[r.IntN(len(makers))](r) }
}

var password = either(chosen, strong)

// jwt returns a token of three parts.
func jwt(r *rand.Rand) string {
	return "eyJ" + pick(r, url64s, 17) + ".eyJ" + pick(r, url64s, 40+r.IntN(60)) + "." + pick(r, url64s, 43)
}

// iban returns an account number of a country with a valid checksum.
func iban(country string, length int, letters string) func(*rand.Rand) string {
	return func(r *rand.Rand) string {
		account := letters + pick(r, decimals, length-4-len(letters))
		rest := 0
		for _, c := range account + country + "00" {
			n, err := strconv.ParseInt(string(c), 36, 0)
			if err != nil {
				panic(err)
			}
			if n > 9 {
				rest *= 10
			}
			rest = (rest*10 + int(n)) % 97
		}
		return fmt.Sprintf("%s%02d%s", country, 98-rest, account)
	}
}

// inFours inserts a blank after every four characters.
func inFours(s string) string {
	var parts []string
	for part := range slices.Chunk([]rune(s), 4) {
		parts = append(parts, string(part))
	}
	return strings.Join(parts, " ")
}
