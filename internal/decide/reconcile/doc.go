// Package reconcile relates a new statement to the existing memories without a model: the statement repeats one, updates it, contradicts
// it, asks to forget it, or is new. In doubt it is new, because losing a statement is worse than keeping it twice.
//
// It reads statements as they are stored: in the third person, in English and Chinese. A statement replaces another if both fill the
// same slot (where the user lives, the dog's name, the favourite colour) with different values, if one negates the other (likes, no
// longer likes), or if one ends what the other says (looks for a job, found one; plans to go, went; an appointment that is moved or
// cancelled).
package reconcile
