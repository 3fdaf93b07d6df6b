// Package local embeds texts without a model, a download or a network: it hashes their words and character n-grams into
// a vector. It compares wording, not meaning: "dog" is near "dogs" and 咖啡厅 near 咖啡, but "dog" is no nearer to
// "puppy" than to "car". Its vectors are the same on every machine and in every run.
package local
