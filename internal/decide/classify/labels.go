package classify

// Label is what a sentence does.
type Label string

// The labels of sentences to keep have the names of memory kinds. The others are below.
const (
	Fact         Label = "fact"
	Preference   Label = "preference"
	Relationship Label = "relationship"
	Plan         Label = "plan"
	Appointment  Label = "appointment"
	Decision     Label = "decision"
	Experience   Label = "experience"
	Task         Label = "task"
	Problem      Label = "problem"
	Request      Label = "request" // a standing instruction

	Moment       Label = "moment" // a passing state
	Hypothetical Label = "hypothetical"
	Play         Label = "play"  // role play and fiction
	Irony        Label = "irony" // jokes too
	Quote        Label = "quote" // pasted and quoted text, code
	Other        Label = "other" // people that are not in the user's life
	World        Label = "world" // opinions and facts of the world
	Question     Label = "question"
	Ask          Label = "ask" // a request of the moment
	Chat         Label = "chat"
	Secret       Label = "secret"

	Remember      Label = "remember"
	ForgetLast    Label = "forget-last"
	ForgetNamed   Label = "forget-named"
	ForgetAbout   Label = "forget-about"
	ForgetAll     Label = "forget-all"
	PrivateThis   Label = "private-this"
	PrivateBefore Label = "private-before"
	PrivateAfter  Label = "private-after"
)

// Labels are all labels: first those to keep, then the others, then commands.
func Labels() []Label {
	return []Label{
		Fact, Preference, Relationship, Plan, Appointment, Decision, Experience, Task, Problem, Request,
		Moment, Hypothetical, Play, Irony, Quote, Other, World, Question, Ask, Chat, Secret,
		Remember, ForgetLast, ForgetNamed, ForgetAbout, ForgetAll, PrivateThis, PrivateBefore, PrivateAfter,
	}
}

// Kept are the labels of sentences to keep.
func Kept() []Label { return Labels()[:keepLabels] }

// keepLabels is how many of the labels are of sentences to keep.
const keepLabels = 10

// Slots are what a sentence to keep is about; the first is none.
func Slots() []string {
	return []string{
		"", "home", "origin", "job", "employer", "school", "partner", "child", "parent", "sibling", "friend", "pet", "name", "age", "birthday",
		"diet", "allergy", "health", "phone", "email", "hobby", "sport", "music", "food", "travel", "possession", "vehicle", "money", "language",
		"time", "faith", "work-tool",
	}
}

// keepFlag is the flag of all sentences to keep. It is learned apart from the labels, and both together know better.
const keepFlag = "keep"

// Flags are properties of a sentence that do not exclude each other.
func Flags() []string {
	return []string{"q", "p", "remember", "correction", "update", "past", "dated", keepFlag}
}
