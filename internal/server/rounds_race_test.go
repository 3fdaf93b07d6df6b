//go:build race

package server_test

// echoRounds is smaller with the race detector, which makes the database some 27 times slower.
const echoRounds = 21
