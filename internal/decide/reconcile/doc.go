// Package reconcile says without a model what becomes of a new statement: it repeats what is known, brings it up to date,
// contradicts it, asks for it to be forgotten, or is simply new. It errs on one side: what it cannot tell for sure is new,
// because a statement that is swallowed is a loss, and one that is kept twice a nuisance.
//
// It reads statements as they are stored, in the third person, in English and Chinese. A statement takes the place of
// another when both fill the same slot (where the user lives, the dog's name, the favourite colour) with another value,
// when one says the opposite of the other (likes, no longer likes), or when one ends what the other says (looks for a job,
// found one; plans to go, went; an appointment that is moved or cancelled).
package reconcile
