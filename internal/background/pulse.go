package background

// Heartbeat is told how each round of some background work ended. nil is nobody who watches. It must not block.
type Heartbeat func(err error)

// Beat tells that a round has ended, in an error or without one.
func (f Heartbeat) Beat(err error) {
	if f != nil {
		f(err)
	}
}
