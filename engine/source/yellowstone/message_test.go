package yellowstone

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/datatest"
	"ledgerd/engine/source/nodetest"
)

func hexadecimal(t testing.TB, digits string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(digits, " ", ""))
	must(t, err)
	return b
}

var base58Words = regexp.MustCompile(`@\w+`)

// written returns the bytes of a SubscribeUpdate: after "0x" in hexadecimal, else it is written by field as geyser.proto names
// them, in which "@BASE58" is a key or a signature.
func written(t testing.TB, text string) []byte {
	t.Helper()
	if digits, isBytes := strings.CutPrefix(text, "0x"); isBytes {
		return hexadecimal(t, digits)
	}
	text = base58Words.ReplaceAllStringFunc(text, func(word string) string {
		if key, err := ledger.ParsePubkey(word[1:]); err == nil {
			return fmt.Sprintf("%q", key[:])
		}
		signature, err := ledger.ParseSignature(word[1:])
		must(t, err)
		return fmt.Sprintf("%q", signature[:])
	})
	m := nodetest.NewMessage("SubscribeUpdate")
	must(t, prototext.Unmarshal([]byte(text), m))
	message, err := proto.Marshal(m)
	must(t, err)
	return message
}

// F27: messages are read as geyser.proto documents them, and refused where they are cut, of wrong types or out of range. An entry
// of testdata/messages.txt is a name, a message, and the update or the error that comes of it.
func TestMessagesAreReadAsDocumented(t *testing.T) {
	for _, lines := range datatest.Entries(t, "messages.txt") {
		var got, want Update
		err, says := Decoder{}.Decode(written(t, lines[1]), &got), strings.TrimPrefix(lines[2], "> ")
		if json.Unmarshal([]byte(says), &want) != nil {
			if err == nil || err.Error() != says {
				t.Errorf("%s: %v, want %s", lines[0], err, says)
			}
		} else if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v\n got %+v\nwant %+v", lines[0], err, got, want)
		}
	}
}

// F27: FuzzDecode feeds what no server sends. Whatever it is, it is read or refused.
func FuzzDecode(f *testing.F) {
	for _, lines := range datatest.Entries(f, "messages.txt") {
		f.Add(written(f, lines[1]), false)
		f.Add(written(f, lines[1]), true)
	}
	f.Fuzz(func(t *testing.T, message []byte, sliced bool) {
		var u Update
		if err := (Decoder{Sliced: sliced}).Decode(message, &u); err != nil {
			return
		}
		_ = NewAssembler(discard).Take(t.Context(), &u)
	})
}
