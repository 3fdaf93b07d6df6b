// Package openapi holds the OpenAPI document (version 2.0) of the API's JSON form, generated from the proto files. Bots in Go
// have no use for it; they import the package above.
package openapi

import _ "embed"

// Document is the document, as JSON.
//
//go:embed memsidecar.swagger.json
var Document []byte
