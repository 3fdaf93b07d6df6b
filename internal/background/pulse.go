package background

// Heartbeat is called with the result of each round of a background task. It may be nil. It must not block.
type Heartbeat func(err error)

// Beat tells that a round has ended, in an error or without one.
func (f Heartbeat) Beat(err error) {
	if f != nil {
		f(err)
	}
}
