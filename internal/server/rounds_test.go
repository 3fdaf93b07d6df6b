//go:build !race

package server_test

// echoRounds is how often what is retrieved comes back, in each language.
const echoRounds = 150
