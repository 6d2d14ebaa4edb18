package frame

import (
	"bufio"
	"bytes"
	"io"
	"runtime"
	"testing"

	"github.com/fasthttp/websocket"
)

const (
	greek   = "κ\u1f79σμε" // one of its characters has three bytes
	mixed   = "µ@ßöäüàá, plain, and 𝄞"
	spoiled = greek + "\xed\xa0\x80" + "edited" // a lone surrogate within
)

// Groups 6.1 to 6.4: whole messages, cut between and inside characters. How soon text is noticed
// that cannot become valid any more RFC 6455, section 8.1, does not say. A message means nothing
// before its end, so it is judged when it is whole: the suite calls that non-strict.
func TestUTF8IsJudgedWhenAMessageIsWhole(t *testing.T) {
	const beyond = greek + "\xf4\x90\x80\x80" + "edited" // past the last code point, from the second byte on
	runCases(t, []protocolCase{
		{id: "6.1.1", sent: frames(text("")), gets: gets("")},
		{id: "6.1.2", sent: frames(begun(""), more(""), last("")), gets: gets("")},
		{id: "6.1.3", sent: frames(begun(""), more("middle"), last("")), gets: gets("middle")},
		{id: "6.2.1", sent: frames(text(mixed)), gets: gets(mixed)},
		{id: "6.2.3", sent: fragments(websocket.TextMessage, 1, mixed), gets: gets(mixed)},
		{id: "6.2.4", sent: fragments(websocket.TextMessage, 1, greek), gets: gets(greek)},
		{id: "6.3.1", sent: frames(text(spoiled)), err: errUTF8},
		{id: "6.3.2", sent: fragments(websocket.TextMessage, 1, spoiled), err: errUTF8},
		{id: "6.4.1", sent: frames(begun(beyond[:len(greek)+2]), more(beyond[len(greek)+2:])), gets: nil},
		{id: "6.4.2", sent: frames(begun(beyond[:len(greek)+2]), ping(""), last(beyond[len(greek)+2:])), gets: []event{{websocket.PingMessage, ""}}, err: errUTF8},
		{id: "UTF-16", sent: frames(text("\xff\xfe{\x00}\x00")), err: errUTF8},
	})
}

// Of a message that is refused nothing more is read than its header, however long it is, and of one
// that does not come no more is kept than came.
func TestPromisesTakeNoMemory(t *testing.T) {
	huge := []byte{0x81, 0xff, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0} // 64 KiB
	for name, sent := range map[string][]byte{"promised": huge, "too big": text(repeat(16 << 20))} {
		from := bytes.NewReader(sent)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		r := bufio.NewReaderSize(from, 256)
		h, err := ReadHeader(r)
		if err != nil {
			t.Fatal(err)
		}
		err = new(Message).Read(h, r, nil)
		runtime.ReadMemStats(&after)
		if got := after.TotalAlloc - before.TotalAlloc; err == nil || got > 16<<10 {
			t.Errorf("%s: err = %v after %d bytes were allocated, want an error and at most 16 KiB", name, err, got)
		}
	}
	// A buffer that grew for a long message is not kept for the next one.
	m := new(Message)
	sent := bytes.NewReader(text(repeat(65536)))
	r := bufio.NewReader(sent)
	h, _ := ReadHeader(r)
	if err := m.Read(h, r, func([]byte) {}); err != nil || m.text != nil {
		t.Errorf("after a message of 64 KiB: err = %v, %d bytes are kept", err, cap(m.text))
	}
	if _, err := sent.ReadByte(); err != io.EOF {
		t.Errorf("not all was read: %v", err)
	}
}

// Groups 6.5 to 6.23: what is UTF-8 and what is not, one sequence a message. The sequences are
// those of Markus Kuhn's stress test for decoders.
func TestUTF8Sequences(t *testing.T) {
	valid := []string{
		"hello$world", "hello¢world", "hello€world", "hello𤭢world", greek, // 6.5
		"\x00", "\u0080", "\u0800", "\U00010000", "\x7f", "\u07ff", "\uffff", "\U0010ffff", // 6.7, 6.9: the first and the last of each length
		"\ud7ff", "\ue000", "\ufffd", // 6.11: around the surrogates
		"\ufffe", "\U0001fffe", "\U0010fffe", "\ufff9", "\ufffc", // 6.22, 6.23: no characters, but good UTF-8
	}
	invalid := []string{
		greek[:1], greek[:3], greek[:4], greek[:len(greek)-1], // 6.6: a character begun
		"\xf8\x88\x80\x80\x80", "\xfc\x84\x80\x80\x80\x80", "\xf7\xbf\xbf\xbf", "\xfd\xbf\xbf\xbf\xbf\xbf", // 6.8, 6.10: five and six bytes
		"\xf4\x90\x80\x80",                                 // 6.11: past the last code point
		"\x80", "\xbf", "\x80\xbf", "\x80\xbf\x80\xbf\x80", // 6.12: bytes that can only go on
		"\xc0 \xdf ", "\xe0 \xef ", "\xf0 \xf7 ", "\xf8 \xfb ", "\xfc \xfd ", // 6.13: that can only begin
		"\xdf", "\xef\xbf", "\xf7\xbf\xbf", "\xc0\xe0\x80\xf0\x80\x80", // 6.14, 6.15: the last is missing
		"\xfe", "\xff", "\xfe\xfe\xff\xff", // 6.16: bytes of no character
		"\xc0\xaf", "\xe0\x80\xaf", "\xf0\x80\x80\xaf", "\xc1\xbf", "\xe0\x9f\xbf", "\xf0\x8f\xbf\xbf", // 6.17, 6.18: too long
		"\xc0\x80", "\xe0\x80\x80", "\xf0\x80\x80\x80", // 6.19
		"\xed\xa0\x80", "\xed\xad\xbf", "\xed\xbf\xbf", "\xed\xa0\x80\xed\xb0\x80", // 6.20, 6.21: surrogates, alone and in pairs
	}
	runCases(t, numbered("6, valid", valid, func(s string) protocolCase {
		return protocolCase{sent: frames(text(s)), gets: gets(s)}
	}))
	runCases(t, numbered("6, invalid", invalid, func(s string) protocolCase {
		return protocolCase{sent: frames(text(s)), err: errUTF8}
	}))
}
