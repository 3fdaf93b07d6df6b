package reconcile

import (
	"slices"
	"strings"

	"github.com/memsidecar/memsidecar/internal/lang"
	"github.com/memsidecar/memsidecar/internal/lang/lazyregexp"
)

// uniqueEN are relatives that a user has only once, so that "the mother" is always the same person.
const uniqueEN = `(?:'s (?P<o>parents|mother|mom|mum|father|dad|wife|husband|spouse|girlfriend|boyfriend|partner|fiancee?|boss|manager|` +
	`supervisor|landlord|best friend|dog|cat|pet|puppy|kitten|parrot|rabbit|hamster))?`

const userOrOwner = `(?i)^the user` + uniqueEN

// patternsEN find what fills a slot in a clause that begins with "the user".
var patternsEN = []pattern{
	p("home", userOrOwner+` (?:lives?|is living|are living|resides?|is residing|is based|are based|settled|settled down) in (?P<v>.+)$`, place),
	p("home", userOrOwner+` (?:moved|relocated|is moving|are moving) (?:back |house |home |over |permanently )*(?:from .+? )?to (?P<v>.+)$`, moved),
	ends("home", userOrOwner+` (?:moved out of|moved away from) (?P<v>.+)$`),
	p("name", `(?i)^the user is (?:called|named) (?P<v>.+)$`, capital),
	wish(p("form of address", `(?i)^the user (?:wants|prefers|likes|would like|wishes|asked)(?: the assistant| to be)*(?: to)? (?:called|`+
		`addressed as|call (?:them|him|her|the user)|address (?:them|him|her|the user) as|go by)(?: the name)? (?P<v>.+)$`, nil)),
	wish(p("form of address", `(?i)^the user (?:goes by|prefers the name|should be called) (?P<v>.+)$`, nil)),
	wish(p("language of answers", `(?i)^the user (?:wants|prefers|would like|asked|needs|wishes|likes)\b.*\b(?:answers?|answered|replies|`+
		`reply|responses?|respond|speak|talk|write|chat|communicate|addressed)\b.* in (?P<v>english|chinese|mandarin|cantonese|french|`+
		`german|spanish|italian|portuguese|russian|japanese|korean|arabic|hindi|dutch|turkish|polish|vietnamese|thai|indonesian)\b.*$`, nil)),
	p("age", userOrOwner+` (?:is|turned|turns) (?P<v>\d{1,3}|(?:twen|thir|for|fif|six|seven|eigh|nine)ty(?:-\w+)?)(?: years? old| yrs? `+
		`old)?(?: today)?$`, nil),
	p("work/employer", userOrOwner+` (?:works?|is working|is employed|got a (?:new )?job|found a (?:new )?job|started a (?:new )?job|`+
		`started working|took a job|accepted a job|landed a job|accepted an offer|started) (?:at|for|with) (?P<v>.+)$`, capital),
	p("work/employer", `(?i)^the user joined (?P<v>.+?) as (?:a|an|the) .+$`, capital),
	p("work/employer", `(?i)^the user (?:changed|switched) jobs to (?P<v>.+)$`, capital),
	ends("work/employer", `(?i)^the user (?:quit|left|resigned from|was fired from|been fired from|was laid off from|been laid off from|`+
		`got fired from|lost) (?P<v>(?-i:[A-Z]).*)$`),
	ends("work/employer", `(?i)^the user (?:quit|left|resigned from|lost) (?:his|her|their|the) (?:current |old )?(?:job|position|`+
		`post)(?: (?:at|with) (?P<v>.+))?$`),
	ends("work/employer", `(?i)^the user (?:quit|resigned|was laid off|been laid off|was fired|been fired|got laid off|got fired)$`),
	ends("work/employer", `(?i)^the user (?:switched|changed) (?:jobs|companies|employers)$`),
	ends("work", `(?i)^the user (?:retired|is retired)(?: .*)?$`),
	p("work/title", userOrOwner+` works? as (?:a|an|the) (?P<v>.+?)(?: (?:at|in|for) .+)?$`, nil),
	p("work/title", `(?i)^the user (?:was promoted to|been promoted to|is promoted to|was made) (?:a |an |the )?(?P<v>.+?)(?: (?:at|in|`+
		`for) .+)?$`, nil),
	p("work/title", userOrOwner+` (?:is|became) (?:a|an|the) (?P<v>(?:[a-z-]+ ){0,2}(?:engineer|developer|programmer|teacher|doctor|nurse|`+
		`lawyer|accountant|designer|student|driver|chef|cook|manager|salesperson|journalist|editor|photographer|translator|consultant|`+
		`analyst|scientist|researcher|professor|actor|actress|barista|waiter|waitress|cashier|mechanic|electrician|plumber|architect|`+
		`dentist|pharmacist|therapist|firefighter|paramedic|pilot|intern|director))(?: (?:at|in|for) .+)?$`, nil),
	p("school", `(?i)^the user (?:studies|is studying|goes to school|goes to college|goes to university|is enrolled|is a student) at `+
		`(?P<v>.+)$`, capital),
	p("school", `(?i)^the user (?:attends|transferred to) (?P<v>.*\b(?:University|College|School|Institute|High)\b.*)$`, capital),
	p("major", `(?i)^the user (?:majors|is majoring) in (?P<v>.+)$`, nil),
	relation("single", userOrOwner+` (?:is single|broke up|broken up|is newly single|split up|is not in a relationship)\b.*$`),
	relation("single", `(?i)^the user (?:his|her|their) (?:boyfriend|girlfriend|partner) (?:broke up|split up|separated|broken up)\b.*$`),
	relation("single", `(?i)^the user's (?:boyfriend|girlfriend|partner) (?:broke up with|dumped) (?:them|him|her|the user)\b.*$`),
	relation("dating", `(?i)^the user (?:his|her|their) (?:boyfriend|girlfriend|partner) are together\b.*$`),
	ends("name of boyfriend", `(?i)^the user (?:(?:his|her|their) boyfriend )?(?:broke up|split up|broken up)\b.*$`),
	ends("name of girlfriend", `(?i)^the user (?:(?:his|her|their) girlfriend )?(?:broke up|split up|broken up)\b.*$`),
	relation("dating", userOrOwner+` (?:has a (?:new )?(?:girlfriend|boyfriend|partner)|is dating|is in a relationship|is seeing someone)\b.*$`),
	relation("engaged", userOrOwner+` (?:is engaged|got engaged)\b.*$`),
	relation("married", userOrOwner+` (?:is happily married|is married|got married|married (?:his|her|their))\b.*$`),
	relation("divorced", userOrOwner+` (?:is divorced|got divorced|divorced|is separated)\b.*$`),
	relation("widowed", userOrOwner+` (?:is widowed|is a widow|is a widower)\b.*$`),
	p("weight", userOrOwner+` (?:weighs|weighed in at|is down to|is up to) (?P<v>.*\d.*?)$`, nil),
	p("height", userOrOwner+` is (?P<v>[\d.' ]+(?:cm|m|centimeters|metres|meters|feet|ft|inches)?\b.*?)(?: in height)? tall$`, nil),
	p("shoe size", `(?i)^the user wears (?:a )?(?:size )?(?P<v>[\d.]+) shoes?$`, nil),
	p("shoe size", `(?i)^the user wears shoes in size (?P<v>[\d.]+)$`, nil),
	p("", `(?i)^the user's (?P<o>dog|cat|pet|puppy|kitten|parrot|rabbit|hamster|mother|mom|mum|father|dad|wife|husband|girlfriend|`+
		`boyfriend|partner|boss|manager) is (?P<a>called|named) (?P<v>.+)$`, capital),
	p("", `(?i)^the user's (?:new )?(?P<a>[a-z][a-z0-9' -]{1,60}?) (?:is(?: changed to)?|are|(?:was )?changed to|changed from .+ to|`+
		`became|turned into|dropped to|fell to|went (?:up|down) to|rose to|moved to|was moved to|(?:has )?been changed to|been moved to) `+
		`(?P<v>.+)$`, nil),
	turn(p("", `(?i)^the user `+askedToEN+`(?:change|update|switch|revert|adjust|raise|lower|increase|decrease|reduce|bump|correct)(?:d|`+
		`ed)? (?:his|her|their|the) (?:new )?(?P<a>[a-z][a-z0-9' -]{1,60}?)(?: back)?(?: from (?P<f>.+?))?(?: back)? to (?P<v>.+)$`, nil)),
	weak(wish(p("", `(?i)^the user asked the assistant to (?:set|add|put|log|update|change) the (?P<a>[a-z][a-z0-9' -]{1,60}?)(?: to| at| `+
		`as|:) (?P<v>.+)$`, nil))),
	weak(p("", `(?i)^the (?:total |overall |whole )?(?P<a>budget|deadline|due date|address|email|phone number) (?:is|will be|was set to|`+
		`is set to) (?P<v>.+)$`, nil)),
	p("", `(?i)^the user (?:changed|updated|switched|set|got) (?:his|her|their|the|a) (?:new )?(?P<a>[a-z][a-z0-9' -]{1,60}?)(?: from `+
		`.+?)?(?: to|:) (?P<v>.+)$`, nil),
}

// attributesEN are nouns of which something has one. What stands before them is part of the slot: "work email", "favourite
// winter drink". Each is followed by the name of the slot.
var attributesEN = map[string]string{
	"name": "name", "nickname": "nickname", "surname": "surname", "age": "age", "birthday": "birthday", "date of birth": "birthday",
	"phone": "phone", "phone number": "phone",
	"number": "number", "mobile number": "phone", "cell number": "phone", "telephone number": "phone", "email": "email",
	"email address": "email", "address": "address",
	"home address": "address", "job": "work/title", "occupation": "work/title", "profession": "work/title", "job title": "work/title",
	"position": "work/title", "employer": "work/employer", "company": "work/employer",
	"school": "school", "university": "school", "major": "major", "height": "height", "weight": "weight", "size": "size",
	"shoe size": "shoe size", "time zone": "time zone", "timezone": "time zone",
	"hometown": "hometown", "nationality": "nationality", "blood type": "blood type", "zodiac sign": "zodiac sign",
	"star sign": "zodiac sign", "marital status": "relationship", "relationship status": "relationship", "salary": "salary",
	"rent": "rent", "username": "username", "password": "password", "license plate": "license plate", "licence plate": "license plate",
	"native language": "native language", "mother tongue": "native language",
	"locker code": "locker code", "pin": "pin", "wedding": "wedding", "wedding date": "wedding", "due date": "due date", "budget": "budget",
	"deadline": "deadline", "savings goal": "savings goal",
	"target weight": "target weight", "goal weight": "target weight", "preferred language": "language of answers", "home": "home",
	"wifi password": "wifi password", "desk": "desk", "seat": "seat",
}

// attribute is the slot of an attribute's name, or "" when there may be several.
func attribute(name string) string {
	name = strings.ToLower(strings.Join(strings.Fields(name), " "))
	if han.MatchString(name) {
		return attributeZH(name)
	}
	switch name {
	case "", "called", "named":
		return "name"
	}
	if slot, ok := attributesEN[name]; ok {
		return slot
	}
	if strings.Contains(name, "favourite") {
		return name
	}
	words := strings.Fields(name)
	for n := min(len(words)-1, 3); n > 0; n-- {
		slot, ok := attributesEN[strings.Join(words[len(words)-n:], " ")]
		owner := strings.TrimSuffix(strings.Join(words[:len(words)-n], " "), "'s")
		if !ok {
			continue
		}
		if strings.HasSuffix(words[len(words)-n-1], "'s") {
			if several[owner] {
				return "" // there may be two sisters
			}
			return slot + " of " + canonical(owner)
		}
		return slot + " (" + owner + ")"
	}
	return ""
}

// several are people that a user may have more than once.
var several = lang.Set(`friend sister brother cousin colleague coworker classmate son daughter child kid neighbor neighbour aunt uncle
	nephew niece student teacher client customer grandson granddaughter roommate`)

// canonical is one of several words for the same one.
func canonical(owner string) string {
	for _, group := range owners {
		words := strings.Fields(group)
		if slices.Contains(words, owner) {
			return words[0]
		}
	}
	return owner
}

var owners = []string{
	"mother mom mum 妈妈 母亲 老妈", "father dad 爸爸 父亲 老爸", "wife 妻子 老婆 太太 媳妇 爱人", "husband 丈夫 老公 先生", "girlfriend 女朋友 女友", "boyfriend 男朋友 男友",
	"dog puppy 狗 狗狗 小狗", "cat kitten 猫 猫咪 小猫 猫猫", "pet 宠物", "boss 老板", "parents 父母 爸妈", "manager supervisor 上司 领导 经理",
}

var (
	noPlaceEN = lazyregexp.New(`(?i)^(?:a|an|his|her|their|its|another|one|some|fear|hope|peace|harmony|poverty)\b`)
	thePlaces = lazyregexp.New(`(?i)^the (?:us|usa|u\.s\.|uk|united|netherlands|philippines|hague|bronx|bay area|czech|uae|bahamas|maldives)\b`)
	// things are what people move to that is no place.
	things = lang.Set(`linux windows mac macos ubuntu debian arch vim neovim emacs vscode python go golang rust java kotlin swift typescript
		javascript
		kubernetes docker slack teams discord telegram postgres postgresql mysql sqlite aws azure gcp android ios iphone chrome firefox safari
		marketing sales engineering finance hr monday tuesday wednesday thursday friday saturday sunday january february march april may june
		july august september october november december`)
)

// place reports whether a value is a place to live in, such as a town, and not a flat.
func place(value string) bool {
	return !noPlaceEN.MatchString(value) && (!strings.HasPrefix(strings.ToLower(value), "the ") || thePlaces.MatchString(value))
}

// moved reports whether the target of a move is a place: it has a name, and not that of a program.
func moved(value string) bool {
	first, _, _ := strings.Cut(strings.ToLower(value), " ")
	return place(value) && (capital(value) || thePlaces.MatchString(value)) && !things[first]
}
