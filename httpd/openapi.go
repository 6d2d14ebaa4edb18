package httpd

import _ "embed"

// openAPIDocument describes the interface in OpenAPI 3. Tests hold every response they
// see against it.
//
//go:embed openapi.json
var openAPIDocument []byte
