package frame

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
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
		{id: "6.2.3", sent: fragments(Text, 1, mixed), gets: gets(mixed)},
		{id: "6.2.4", sent: fragments(Text, 1, greek), gets: gets(greek)},
		{id: "6.3.1", sent: frames(text(spoiled)), err: errUTF8},
		{id: "6.3.2", sent: fragments(Text, 1, spoiled), err: errUTF8},
		{id: "6.4.1", sent: frames(begun(beyond[:len(greek)+2]), more(beyond[len(greek)+2:])), gets: nil},
		{id: "6.4.2", sent: frames(begun(beyond[:len(greek)+2]), ping(""), last(beyond[len(greek)+2:])), gets: []event{{Ping, ""}}, err: errUTF8},
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
	if err := m.Read(h, r, func([]byte) {}); err != nil || cap(m.text) > keptBytes {
		t.Errorf("after a message of 64 KiB: err = %v, %d bytes are kept", err, cap(m.text))
	}
	if _, err := sent.ReadByte(); err != io.EOF {
		t.Errorf("not all was read: %v", err)
	}
}

// Groups 6.5 to 6.23: what is UTF-8 and what is not, one sequence a message. The sequences are
// those of Markus Kuhn's stress test for decoders.
func TestUTF8Sequences(t *testing.T) {
	groups := []struct {
		valid     bool
		sequences []string
	}{
		{true, []string{"hello$world", "hello¢world", "hello€world", "hello𤭢world", greek}}, // 6.5
		{true, prefixes(greek)}, // 6.6, and half of them are not
		{true, []string{"\x00", "\u0080", "\u0800", "\U00010000"}}, // 6.7: the first of each length
		{false, []string{"\xf8\x88\x80\x80\x80", "\xfc\x84\x80\x80\x80\x80"}},
		{true, []string{"\x7f", "\u07ff", "\uffff", "\U0010ffff"}}, // 6.9: the last of each length
		{false, []string{"\xf7\xbf\xbf\xbf", "\xfb\xbf\xbf\xbf\xbf", "\xfd\xbf\xbf\xbf\xbf\xbf"}},
		{true, []string{"\ud7ff", "\ue000", "\ufffd", "\U0010ffff", "\xf4\x90\x80\x80"}}, // 6.11: around the limits; the last is not
		{false, continuations()}, // 6.12
		{false, lonelyStarts()},  // 6.13
		{false, cutShort},        // 6.14
		{false, []string{strings.Join(cutShort, "")}},
		{false, []string{"\xfe", "\xff", "\xfe\xfe\xff\xff"}}, // 6.16: bytes of no character
		{false, []string{"\xc0\xaf", "\xe0\x80\xaf", "\xf0\x80\x80\xaf", "\xf8\x80\x80\x80\xaf", "\xfc\x80\x80\x80\x80\xaf"}},
		{false, []string{"\xc1\xbf", "\xe0\x9f\xbf", "\xf0\x8f\xbf\xbf", "\xf8\x87\xbf\xbf\xbf", "\xfc\x83\xbf\xbf\xbf\xbf"}},
		{false, []string{"\xc0\x80", "\xe0\x80\x80", "\xf0\x80\x80\x80", "\xf8\x80\x80\x80\x80", "\xfc\x80\x80\x80\x80\x80"}},
		{false, []string{"\xed\xa0\x80", "\xed\xad\xbf", "\xed\xae\x80", "\xed\xaf\xbf", "\xed\xb0\x80", "\xed\xbe\x80", "\xed\xbf\xbf"}}, // 6.20: surrogates
		{false, pairs([]string{"\xed\xa0\x80", "\xed\xad\xbf", "\xed\xae\x80", "\xed\xaf\xbf"}, []string{"\xed\xb0\x80", "\xed\xbf\xbf"})},
		{true, nonCharacters()}, // 6.22
		{true, []string{"\ufff9", "\ufffa", "\ufffb", "\ufffc", "\ufffd", "\ufffe", "\uffff"}}, // 6.23: specials
	}
	var cases []protocolCase
	for i, g := range groups {
		for j, s := range g.sequences {
			pc := protocolCase{id: fmt.Sprintf("6.%d.%d", i+5, j+1), sent: frames(text(s)), gets: gets(s)}
			if !g.valid || invalidAmong[pc.id] {
				pc.gets, pc.err = nil, errUTF8
			}
			cases = append(cases, pc)
		}
	}
	if len(cases) != 132 {
		t.Errorf("%d cases, want the 132 of the list", len(cases))
	}
	runCases(t, cases)
}

// invalidAmong are the cases of groups that are otherwise valid: prefixes that end inside a
// character, and the first that is past the last code point.
var invalidAmong = map[string]bool{
	"6.6.1": true, "6.6.3": true, "6.6.4": true, "6.6.6": true, "6.6.8": true, "6.6.10": true, "6.11.5": true,
}

// cutShort are characters of two to six bytes without their last, the smallest and the largest.
var cutShort = []string{
	"\xc0", "\xe0\x80", "\xf0\x80\x80", "\xf8\x80\x80\x80", "\xfc\x80\x80\x80\x80",
	"\xdf", "\xef\xbf", "\xf7\xbf\xbf", "\xfb\xbf\xbf\xbf", "\xfd\xbf\xbf\xbf\xbf",
}

func prefixes(s string) (all []string) {
	for i := range len(s) {
		all = append(all, s[:i+1])
	}
	return all
}

func pairs(first, second []string) (all []string) {
	for _, a := range first {
		for _, b := range second {
			all = append(all, a+b)
		}
	}
	return all
}

// continuations are bytes that can only go on: the first and the last alone, rows of them in
// turns, and all of them.
func continuations() []string {
	all := []string{"\x80", "\xbf"}
	for n := 2; n <= 6; n++ {
		all = append(all, strings.Repeat("\x80\xbf", 3)[:n])
	}
	var each []byte
	for b := byte(0x80); b < 0xbf; b++ {
		each = append(each, b)
	}
	return append(all, string(each))
}

// lonelyStarts are the bytes that begin a character of each length, a space after each.
func lonelyStarts() (all []string) {
	for _, span := range [][2]byte{{0xc0, 0xdf}, {0xe0, 0xef}, {0xf0, 0xf7}, {0xf8, 0xfb}, {0xfc, 0xfd}} {
		var s []byte
		for b := span[0]; b < span[1]; b++ {
			s = append(s, b, ' ')
		}
		all = append(all, string(s))
	}
	return all
}

// nonCharacters are the last two code points of each plane: no characters, but good UTF-8.
func nonCharacters() (all []string) {
	for plane := rune(0); plane <= 16; plane++ {
		all = append(all, string(plane<<16|0xfffe), string(plane<<16|0xffff))
	}
	return all
}
