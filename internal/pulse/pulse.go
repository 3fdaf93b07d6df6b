// Package pulse is how work in the background tells whoever watches that it goes on.
package pulse

// Func is told how each round of some background work ended. nil is nobody who watches. It must not block.
type Func func(err error)

// Beat tells that a round has ended, in an error or without one.
func (f Func) Beat(err error) {
	if f != nil {
		f(err)
	}
}
