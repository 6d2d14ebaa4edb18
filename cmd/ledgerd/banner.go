package main

import (
	"fmt"
	"io"
	"net"
	"strings"

	"ledgerd/cmd/internal/build"
	"ledgerd/engine/ledger"
)

// banner tells a person where to look first.
func banner(w io.Writer, public, ops net.Addr, source string, samples []ledger.Pubkey) {
	base := "http://" + public.String() + "/api"
	var b strings.Builder
	fmt.Fprintf(&b, "\nledgerd %s follows %s\n\n", build.Version, source)
	fmt.Fprintf(&b, "  REST       %s/status\n", base)
	fmt.Fprintf(&b, "  latest     %s/blocks/latest\n", base)
	fmt.Fprintf(&b, "  WebSocket  ws://%s/api/ws/accounts\n", public)
	fmt.Fprintf(&b, "  OpenAPI    %s/openapi.json\n", base)
	fmt.Fprintf(&b, "  console    http://%s/\n", public)
	fmt.Fprintf(&b, "  manual     http://%s/docs\n", public)
	if ops != nil {
		fmt.Fprintf(&b, "  operators  http://%s/metrics  /livez  /readyz\n", ops)
	}
	if len(samples) > 0 {
		fmt.Fprintf(&b, "\n  keys to try:\n")
		for _, key := range samples {
			fmt.Fprintf(&b, "    curl %s/account/%s\n", base, key)
		}
	}
	fmt.Fprintln(w, b.String())
}
