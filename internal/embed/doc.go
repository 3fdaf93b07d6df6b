// Package embed turns texts into vectors. The contract is here, with the decorators that every provider is wrapped in;
// local/ needs no model and no network.
package embed
