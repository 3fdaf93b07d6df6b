package llm

import "encoding/json"

// EstimateTokens is about how many tokens a text is, rather too many than too few: one for four ASCII characters, which is
// what English takes, and one for each other character. Chinese takes 0.6 to 1.3 a character, depending on the model.
func EstimateTokens(text string) int64 {
	ascii, others := int64(0), int64(0)
	for _, r := range text {
		if r < 0x80 {
			ascii++
		} else {
			others++
		}
	}
	return (ascii+3)/4 + others
}

// estimate is about how many tokens a request takes.
func (r *Request) estimate() int64 {
	tokens := EstimateTokens(r.Prompt)
	if r.Schema != nil {
		if schema, err := json.Marshal(r.Schema); err == nil { // it is sent along
			tokens += EstimateTokens(string(schema))
		}
	}
	return tokens
}
