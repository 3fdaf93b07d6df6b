// Package local embeds texts without a model, a download or a network: it hashes words and character n-grams into a vector. It compares
// wording, not meaning: "dog" is near "dogs" and 咖啡厅 near 咖啡, but "dog" is as far from "puppy" as from "car". Vectors are the same on
// every machine and in every run.
package local
