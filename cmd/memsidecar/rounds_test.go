//go:build !race

package main

// echoRounds is how often what is retrieved comes back, in each language.
const echoRounds = 500
