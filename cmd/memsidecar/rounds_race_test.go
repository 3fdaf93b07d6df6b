//go:build race

package main

// echoRounds is smaller with the race detector, which slows the database some 27 times.
const echoRounds = 21

// dayUsers is how many talk while the models are away for a day.
const dayUsers = 6
