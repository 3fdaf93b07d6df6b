// Package memsidecarv1 is the API of the sidecar in Go: messages, client and server interface. All but this file is
// generated from the .proto files beside it by `make generate`.
package memsidecarv1
