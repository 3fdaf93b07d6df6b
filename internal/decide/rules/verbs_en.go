package rules

import (
	"strings"

	"github.com/memsidecar/memsidecar/internal/lang"
)

// irregularVerbs gives, for a verb, its past tense and past participle.
var irregularVerbs = map[string][2]string{
	"be": {"was", "been"}, "have": {"had", "had"}, "do": {"did", "done"}, "go": {"went", "gone"}, "get": {"got", "gotten"},
	"see": {"saw", "seen"}, "eat": {"ate", "eaten"}, "drink": {"drank", "drunk"}, "buy": {"bought", "bought"},
	"bring": {"brought", "brought"}, "teach": {"taught", "taught"}, "think": {"thought", "thought"},
	"catch": {"caught", "caught"}, "fight": {"fought", "fought"}, "find": {"found", "found"}, "feel": {"felt", "felt"},
	"leave": {"left", "left"}, "keep": {"kept", "kept"}, "sleep": {"slept", "slept"}, "meet": {"met", "met"},
	"make": {"made", "made"}, "take": {"took", "taken"}, "give": {"gave", "given"}, "write": {"wrote", "written"},
	"drive": {"drove", "driven"}, "ride": {"rode", "ridden"}, "speak": {"spoke", "spoken"}, "break": {"broke", "broken"},
	"choose": {"chose", "chosen"}, "wake": {"woke", "woken"}, "wear": {"wore", "worn"}, "know": {"knew", "known"},
	"grow": {"grew", "grown"}, "fly": {"flew", "flown"}, "draw": {"drew", "drawn"}, "throw": {"threw", "thrown"},
	"begin": {"began", "begun"}, "swim": {"swam", "swum"}, "sing": {"sang", "sung"}, "run": {"ran", "run"},
	"come": {"came", "come"}, "become": {"became", "become"}, "sell": {"sold", "sold"}, "tell": {"told", "told"},
	"say": {"said", "said"}, "pay": {"paid", "paid"}, "hear": {"heard", "heard"}, "hold": {"held", "held"},
	"lose": {"lost", "lost"}, "win": {"won", "won"}, "spend": {"spent", "spent"}, "send": {"sent", "sent"},
	"build": {"built", "built"}, "stand": {"stood", "stood"}, "understand": {"understood", "understood"},
	"forget": {"forgot", "forgotten"}, "sit": {"sat", "sat"}, "fall": {"fell", "fallen"}, "hide": {"hid", "hidden"},
	"show": {"showed", "shown"}, "hurt": {"hurt", "hurt"}, "cut": {"cut", "cut"}, "put": {"put", "put"},
	"read": {"read", "read"}, "quit": {"quit", "quit"}, "set": {"set", "set"}, "hit": {"hit", "hit"}, "let": {"let", "let"},
	"cost": {"cost", "cost"}, "shut": {"shut", "shut"}, "bet": {"bet", "bet"}, "beat": {"beat", "beaten"},
	"lead": {"led", "led"}, "mean": {"meant", "meant"}, "dream": {"dreamt", "dreamt"}, "learn": {"learnt", "learnt"},
	"burn": {"burnt", "burnt"}, "bite": {"bit", "bitten"}, "blow": {"blew", "blown"}, "steal": {"stole", "stolen"},
	"lie": {"lied", "lied"}, "lend": {"lent", "lent"}, "freeze": {"froze", "frozen"}, "hang": {"hung", "hung"},
	"shoot": {"shot", "shot"}, "bear": {"bore", "born"}, "bend": {"bent", "bent"}, "feed": {"fed", "fed"},
	"split": {"split", "split"}, "spread": {"spread", "spread"}, "stick": {"stuck", "stuck"}, "swear": {"swore", "sworn"},
	"sweep": {"swept", "swept"}, "tear": {"tore", "torn"}, "deal": {"dealt", "dealt"}, "dig": {"dug", "dug"},
}

// pastForms are the irregular past tenses that are not also a present tense.
var pastForms = func() map[string]bool {
	out := map[string]bool{"was": true, "were": true, "used": true, "lay": true}
	for base, forms := range irregularVerbs {
		if forms[0] != base {
			out[forms[0]] = true
			out["re"+forms[0]] = true // "retook", "rewrote"
		}
	}
	return out
}()

// participles are the irregular past participles.
var participles = func() map[string]bool {
	out := map[string]bool{"got": true}
	for _, forms := range irregularVerbs {
		out[forms[1]] = true
	}
	return out
}()

// eedVerbs end in "ed" in the present tense.
var eedVerbs = lang.Set("need feed speed bleed breed exceed proceed succeed heed weed embed shed wed")

// modals are followed by a bare infinitive and are the same for all persons; with them stand the auxiliaries that do not
// change between "I" and "he".
var modals = lang.Set("can could will would shall should may might must can't cannot couldn't won't wouldn't shouldn't " +
	"mustn't mightn't didn't hadn't wasn't had did cant couldnt wont wouldnt shouldnt didnt wasnt gonna better")

// adverbs may stand between a subject and its verb.
var adverbs = lang.Set("also just really always never usually often still currently recently actually already only mostly " +
	"mainly sometimes rarely kinda basically honestly probably definitely absolutely totally personally generally normally " +
	"typically regularly occasionally finally even ever now then once twice soon truly literally simply quite rather " +
	"pretty too seriously especially particularly primarily secretly happily sadly unfortunately luckily obviously " +
	"certainly apparently frequently seldom hardly barely almost nearly mostly officially originally previously " +
	"formerly lately strongly deeply greatly genuinely firmly fully completely sorta both all first last later maybe perhaps so")

// commonVerbs are base forms that are hardly anything but verbs, so that "and" before them continues a predicate.
var commonVerbs = lang.Set("have live go love like hate enjoy prefer need want speak teach own eat know think believe feel " +
	"keep wear take make write sing cook bake read listen watch wake sleep swim attend suffer follow collect raise " +
	"grow drive ride commute volunteer manage lead do get buy sell see spend try hope wish consider avoid drink am come " +
	"become bring give tell say ask run meditate practice practise learn earn rent share look use add adore dislike " +
	"can't dont don't haven't cannot hike climb jog paint draw dance train code program")

// nounVerbs are verbs that are as often nouns: they continue a predicate only when a preposition or determiner follows.
var nounVerbs = lang.Set("work study play travel plan drink cook dance train run walk dream ski surf help paint code program " +
	"practice love need hope use swim exercise look read share hike climb jog like rent try")

// baseVerbs tell an infinitive after "to" from a noun.
var baseVerbs = func() map[string]bool {
	out := map[string]bool{}
	for v := range commonVerbs {
		out[v] = true
	}
	for v := range nounVerbs {
		out[v] = true
	}
	for v := range irregularVerbs {
		out[v] = true
	}
	for v := range lang.Set("move start finish visit join marry stop change improve save apply open create develop relax " +
		"explore stay return switch graduate retire reach complete pass lose study call talk adopt launch " +
		"showcase host raise celebrate support promote organize organise attract reduce increase") {
		out[v] = true
	}
	return out
}()

// thirdPerson is the present tense of a verb after "the user".
func thirdPerson(verb string) string {
	switch verb {
	case "am", "are", "be":
		return "is"
	case "have":
		return "has"
	case "do":
		return "does"
	case "go":
		return "goes"
	}
	n := len(verb)
	switch {
	case strings.HasSuffix(verb, "y") && n > 1 && !strings.ContainsRune("aeiou", rune(verb[n-2])):
		return verb[:n-1] + "ies"
	case strings.HasSuffix(verb, "s"), strings.HasSuffix(verb, "x"), strings.HasSuffix(verb, "z"),
		strings.HasSuffix(verb, "ch"), strings.HasSuffix(verb, "sh"), strings.HasSuffix(verb, "o"):
		return verb + "es"
	}
	return verb + "s"
}

// verbForms lists the forms of a verb: base, third person, past, participles. The last consonant of short verbs is doubled whether or
// not English does so: a form that does not exist does no harm.
func verbForms(verb string) []string {
	n := len(verb)
	if n < 2 {
		return []string{verb}
	}
	out := []string{verb, thirdPerson(verb)}
	if verb == "be" {
		return []string{"be", "am", "is", "are", "was", "were", "been", "being"}
	}
	vowel := func(c byte) bool { return strings.IndexByte("aeiou", c) >= 0 }
	double := n <= 5 && n >= 3 && !vowel(verb[n-1]) && vowel(verb[n-2]) && !vowel(verb[n-3]) && strings.IndexByte("wxy", verb[n-1]) < 0
	if forms, ok := irregularVerbs[verb]; ok {
		out = append(out, forms[0], forms[1])
	}
	switch {
	case strings.HasSuffix(verb, "ie"):
		out = append(out, verb+"d", verb[:n-2]+"ying")
	case strings.HasSuffix(verb, "ee"):
		out = append(out, verb+"d", verb+"ing")
	case strings.HasSuffix(verb, "e"):
		out = append(out, verb+"d", verb[:n-1]+"ing")
	case strings.HasSuffix(verb, "y") && !vowel(verb[n-2]):
		out = append(out, verb[:n-1]+"ied", verb+"ing")
	default:
		out = append(out, verb+"ed", verb+"ing")
		if double {
			out = append(out, verb+verb[n-1:]+"ed", verb+verb[n-1:]+"ing")
		}
	}
	seen := map[string]bool{}
	unique := out[:0]
	for _, f := range out {
		if !seen[f] {
			seen[f] = true
			unique = append(unique, f)
		}
	}
	return unique
}
