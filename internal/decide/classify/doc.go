// Package classify tells what a sentence of a user is: which kind of memory it is worth, or why it is worth none, or which command it is.
//
// A linear model over sequences of words and characters, the turns around and the shape of a sentence does it (features.go). Its weights
// are built in; `memeval train` makes them of the messages in dataset/. The result is the same on every machine.
package classify
