package lexical

// Kind is what a token is made from.
type Kind uint8

// The kinds.
const (
	Word     Kind = iota // a word of a script with spaces; Term is stemmed when it is plain a to z
	Number               // digits, with "." perhaps: "2023", "3.14"
	Compound             // several words in one, beside its parts: "2023-05-04", "a@example.com", "node.js", "iphone15"
	Char                 // one character of a script that is indexed by characters
	CharPair             // two neighbouring ones, after the Char of the second
)

// Token is one occurrence of a term.
type Token struct {
	Term     string // folded and stemmed: what equal words share
	Surface  string // folded only
	Kind     Kind
	Function bool // carries grammar, not content: "the", 的, a pair of such characters
}

// Tokens lists a text's tokens, in order of their ends except that dates come first. It is nil when the text holds no
// letter and no digit. The strings share memory with a folded copy of the text.
//
// The words that open every stored statement (用户, "the user", …) are left out, unless nothing else is there.
func Tokens(text string) []Token {
	tokens := make([]Token, 0, capacity(text))
	collect := func(t Token) { tokens = append(tokens, t) }
	scan(text, true, collect)
	if len(tokens) == 0 {
		return nil
	}
	return tokens
}

// Terms lists a document's index terms with repetitions, so that counting them gives term frequencies and their number
// the document's length. Function words stay: what makes them light is their frequency, and QueryTerms. It is nil when
// the text holds no letter and no digit.
//
// The strings share memory with a folded copy of the text: an index that keeps a few of them should strings.Clone those.
func Terms(text string) []string {
	terms := make([]string, 0, capacity(text))
	scan(text, false, func(t Token) { terms = append(terms, t.Term) })
	if len(terms) == 0 {
		return nil
	}
	return terms
}

// QueryTerms lists a question's terms, each once, in order of first appearance. Function and question words are dropped,
// and what asks to remember ("do you know", 还记得); if that would leave nothing, they stay.
func QueryTerms(text string) []string {
	tokens := Tokens(text)
	if tokens == nil {
		return nil
	}
	terms := distinct(tokens, true)
	if len(terms) == 0 {
		terms = distinct(tokens, false)
	}
	return terms
}

func distinct(tokens []Token, contentOnly bool) []string {
	terms := make([]string, 0, len(tokens))
	seen := make(map[string]struct{}, len(tokens))
	for _, t := range tokens {
		if contentOnly && t.Function {
			continue
		}
		if _, again := seen[t.Term]; !again {
			seen[t.Term] = struct{}{}
			terms = append(terms, t.Term)
		}
	}
	return terms
}

// capacity guesses the number of tokens: two for three bytes of Chinese, one for about five of English.
func capacity(text string) int {
	for i := range len(text) {
		if text[i] >= 0x80 {
			return len(text)*2/3 + 8
		}
	}
	return len(text)/4 + 8
}
