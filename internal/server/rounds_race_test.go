//go:build race

package server_test

// echoRounds is smaller with the race detector, which slows the database some 27 times.
const echoRounds = 21
