//go:build !race

package server_test

// echoRounds is how often retrieved text is sent back, in each language.
const echoRounds = 150
