package frame

import (
	"bytes"
	"strings"
	"testing"
)

func TestFramesChooseTheShortestLength(t *testing.T) {
	for _, n := range []int{0, 1, 125, 126, 127, 4096, 65535} {
		payload := strings.Repeat("x", n)
		got := AppendText([]byte("before"), func(b []byte) []byte { return append(b, payload...) })
		want := []byte{0x81, byte(n)}
		if n > 125 {
			want = []byte{0x81, 126, byte(n >> 8), byte(n)}
		}
		want = append(append([]byte("before"), want...), payload...)
		if !bytes.Equal(got, want) {
			t.Errorf("%d bytes: frame begins %x, want %x", n, got[:min(len(got), 12)], want[:min(len(want), 12)])
		}
	}
}

func TestCloseReasonsFitAControlFrame(t *testing.T) {
	got := AppendClose(nil, 4008, strings.Repeat("r", 200))
	if len(got) != 2+maxControlBytes || got[1] != maxControlBytes {
		t.Errorf("a close frame of %d bytes says it carries %d, want %d", len(got), got[1], maxControlBytes)
	}
}
