package lexical

import "strings"

// isFunctionWord reports whether an English word carries grammar rather than content, or belongs to a request to a memory. The list is
// Snowball's (http://snowball.tartarus.org/algorithms/english/stop.txt, BSD) with modal verbs, greetings, "tell me" and "do you
// remember" added. "may" is a month, and "like" is what memories are about.
func isFunctionWord(w string) bool {
	switch w {
	case "i", "me", "my", "mine", "myself", "we", "us", "our", "ours", "ourselves", "you", "your", "yours", "yourself", "yourselves",
		"he", "him", "his", "himself", "she", "her", "hers", "herself", "it", "its", "itself",
		"they", "them", "their", "theirs", "themselves",
		"what", "which", "who", "whom", "whose", "this", "that", "these", "those",
		"am", "is", "are", "was", "were", "be", "been", "being", "have", "has", "had", "having",
		"do", "does", "did", "doing", "done", "would", "should", "could", "ought", "can", "cannot", "will", "shall", "might", "must",
		"i'm", "you're", "we're", "they're", "i've", "you've", "we've", "they've",
		"i'd", "you'd", "he'd", "she'd", "we'd", "they'd", "i'll", "you'll", "he'll", "she'll", "it'll", "we'll", "they'll",
		"isn't", "aren't", "wasn't", "weren't", "hasn't", "haven't", "hadn't", "doesn't", "don't", "didn't", "dont", "im",
		"won't", "wouldn't", "shan't", "shouldn't", "can't", "couldn't", "mustn't", "let's", "let",
		"a", "an", "the", "and", "but", "if", "or", "because", "as", "until", "while", "of", "at", "by", "for", "with", "about",
		"against", "between", "into", "through", "during", "before", "after", "above", "below", "to", "from", "up", "down",
		"in", "out", "on", "off", "over", "under", "again", "further", "then", "once", "here", "there", "when", "where", "why", "how",
		"all", "any", "both", "each", "few", "more", "most", "other", "some", "such", "no", "nor", "not", "only", "own", "same",
		"so", "than", "too", "very", "also", "just", "ever", "even", "still", "much", "many", "yes", "ok", "okay", "please",
		"hi", "hey", "hello", "tell", "know", "remember", "remind", "anything", "something", "everything":
		return true
	}
	return false
}

// subjectAt recognises the subject that opens stored statements, "the user" or a bare "user" where a sentence begins, at
// segment i; last is the subject's last segment. "The user interface" is content.
func (s *scanner) subjectAt(i int) (last int, is bool) {
	last = i
	switch s.at(i) {
	case "the":
		if s.at(i+1) != " " {
			return 0, false
		}
		last = i + 2
	case "user", "user's":
		if !s.sentenceBegins(i) {
			return 0, false
		}
	default:
		return 0, false
	}
	if w := s.at(last); w != "user" && w != "user's" {
		return 0, false
	}
	if s.at(last+1) == " " {
		switch s.at(last + 2) {
		case "interface", "interfaces", "experience", "manual", "guide", "story", "stories", "research", "base", "group", "groups":
			return 0, false
		}
	} else if s.at(last+1) == "-" {
		return 0, false
	}
	return last, true
}

// sentenceBegins reports whether nothing or the end of a sentence stands before segment i.
func (s *scanner) sentenceBegins(i int) bool {
	before := strings.TrimRight(s.text[:s.segments[i].start], " \t\"'*")
	return before == "" || strings.HasSuffix(before, "。") || strings.ContainsRune(".!?;:-\n", rune(before[len(before)-1]))
}
