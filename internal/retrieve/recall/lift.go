package recall

// A message is often the answer to the words of another: "Where did you go?" – "To Kyoto, with my sister". So a good hit
// lifts the messages around it, and finds them where they hold no word of the query. What lifts a message is the best of
// those around it and not their sum: they are about the same things.
const (
	// Lifting is how many messages lift those around them: the best ones.
	Lifting = 16
	// Reach is how far they do: to the second of the same user's messages before and after them in their session.
	Reach = 2
	// Within is how far away these may be, in places of the session: tools, and in a group other people, speak between.
	Within = 6
	// fading is how much less it is with each step further.
	fading = 0.6
	// backward is how much less it is for those before: answers follow questions.
	backward = 2.0 / 3
)

// Lift is what a message of this score gives one that is some steps later, earlier when negative, among the user's messages
// of the session: as a share of Query.NeighborWeight, which is what the next one gets.
func Lift(score float64, steps int) float64 {
	if steps < 0 {
		score, steps = score*backward, -steps
	}
	for ; steps > 1; steps-- {
		score *= fading
	}
	return score
}
