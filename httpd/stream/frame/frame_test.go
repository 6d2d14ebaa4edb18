package frame

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/fasthttp/websocket"

	"ledgerd/engine/ledger/ledgertest"
)

// What may come and what may not is tested over a connection, by FuzzClient of package stream. Here are the
// bytes themselves, and what they take of memory.

// longText returns a text frame of a client that carries so many zeros, which are good text.
func longText(n int) []byte {
	header := binary.BigEndian.AppendUint64([]byte{finBit | byte(websocket.TextMessage), maskBit | 127}, uint64(n))
	return append(header, make([]byte, 4+n)...)
}

// F39: of a message that is refused nothing more is read than its header, however long it is, and of one
// that does not come no more is kept than came.
func TestPromisesTakeNoMemory(t *testing.T) {
	for name, sent := range map[string][]byte{"promised": longText(65536)[:14], "too big": longText(16 << 20)} {
		from := bytes.NewReader(sent)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		r := bufio.NewReaderSize(from, 256)
		h, err := ReadHeader(r)
		ledgertest.Must(t, err)
		err = new(Message).Read(h, r, nil)
		runtime.ReadMemStats(&after)
		if got := after.TotalAlloc - before.TotalAlloc; err == nil || got > 16<<10 {
			t.Errorf("%s: err = %v after %d bytes were allocated, want an error and at most 16 KiB", name, err, got)
		}
	}
	// A buffer that grew for a long message is not kept for the next one.
	m := new(Message)
	sent := bytes.NewReader(longText(65536))
	r := bufio.NewReader(sent)
	h, _ := ReadHeader(r)
	if err := m.Read(h, r, func([]byte) {}); err != nil || m.text != nil {
		t.Errorf("after a message of 64 KiB: err = %v, %d bytes are kept", err, cap(m.text))
	}
	if _, err := sent.ReadByte(); err != io.EOF {
		t.Errorf("not all was read: %v", err)
	}
}

func TestFramesChooseTheShortestLength(t *testing.T) {
	for _, n := range []int{0, 1, 125, 126, 127, 4096, 65535, 65536, 200_000} {
		payload := strings.Repeat("x", n)
		got := AppendText([]byte("before"), func(b []byte) []byte { return append(b, payload...) })
		want := []byte{0x81, byte(n)}
		if n > 125 {
			want = []byte{0x81, 126, byte(n >> 8), byte(n)}
		}
		if n > 65535 {
			want = binary.BigEndian.AppendUint64([]byte{0x81, 127}, uint64(n))
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
