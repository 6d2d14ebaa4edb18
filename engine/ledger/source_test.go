package ledger

import (
	"errors"
	"io"
	"testing"
)

func TestUpstreamErrorIsUnavailable(t *testing.T) {
	for want, err := range map[string]*UpstreamError{
		"the upstream node is down: unexpected EOF": {Err: io.ErrUnexpectedEOF},
		"the upstream node is busy":                 {Busy: true},
	} {
		if err.Error() != want || !errors.Is(err, ErrUnavailable) || errors.Is(err, ErrNotFound) || err.Err != nil && !errors.Is(err, err.Err) {
			t.Errorf("%v is no unavailable upstream, or not %q", err, want)
		}
	}
}
