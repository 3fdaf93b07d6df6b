//go:build !race

package main

// echoRounds is how often what is retrieved comes back, in each language.
const echoRounds = 500

// dayUsers is how many talk while the models are away for a day.
const dayUsers = 100
