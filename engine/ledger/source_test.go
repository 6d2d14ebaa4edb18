package ledger

import (
	"errors"
	"fmt"
	"io"
	"testing"
)

func TestUpstreamErrorIsUnavailable(t *testing.T) {
	tests := map[string]struct {
		err  *UpstreamError
		want string
	}{
		"down": {&UpstreamError{Err: io.ErrUnexpectedEOF}, "the upstream node is down: unexpected EOF"},
		"busy": {&UpstreamError{Busy: true}, "the upstream node is busy"},
	}
	for name, tt := range tests {
		err := fmt.Errorf("cannot fetch: %w", tt.err)
		var found *UpstreamError
		if !errors.Is(err, ErrUnavailable) || !errors.As(err, &found) || errors.Is(err, ErrNotFound) {
			t.Errorf("%s: %v is not an unavailable upstream", name, err)
		}
		if found.Err != nil && !errors.Is(err, found.Err) {
			t.Errorf("%s: %v does not wrap its cause", name, err)
		}
		if tt.err.Error() != tt.want {
			t.Errorf("%s: %q, want %q", name, tt.err.Error(), tt.want)
		}
	}
}
