package rpc

import (
	"io"
	"strings"
	"testing"

	"ledgerd/engine/ledger/ledgertest"
)

// A block at the beginning of an epoch had some 3,000,000 elements in 80 MiB: it is read where a person says that so much may come.
func TestALargeBlockIsReadWhereItMayBe(t *testing.T) {
	const elements, elementBytes = 3_000_000, 28
	for spec, want := range map[string]error{"http://node.example": errTooLong, "http://node.example?max-block=128": nil} {
		c, err := ParseSpec(spec)
		ledgertest.Must(t, err)
		text := io.LimitReader(repeated("{"+strings.Repeat(" ", elementBytes-1)), elements*elementBytes)
		node := &client{large: make(chan struct{}, 1)}
		_, leave, err := node.readBody(t.Context(), text, c.withDefaults().MaxBlock)
		leave()
		ledgertest.ErrorIs(t, err, want, "%s", spec)
	}
}

// repeated is a text without end.
type repeated string

func (r repeated) Read(p []byte) (n int, err error) {
	for n+len(r) <= len(p) {
		n += copy(p[n:], r)
	}
	return n + copy(p[n:], r[:len(p)-n]), nil
}
