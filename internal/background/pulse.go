package background

// Heartbeat is called with the result of each round of a background task. It must not block. It may be nil.
type Heartbeat func(err error)

// Beat reports that a round has ended, with its error or nil.
func (f Heartbeat) Beat(err error) {
	if f != nil {
		f(err)
	}
}
