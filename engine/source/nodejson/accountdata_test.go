package nodejson

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/mr-tron/base58"
	"pgregory.net/rapid"
)

func TestAccountDataIsBounded(t *testing.T) {
	data := new(DataDecoder)
	defer data.Close()
	z, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	bomb := base64.StdEncoding.EncodeToString(z.EncodeAll(make([]byte, maxDataBytes+1), nil))
	if _, err := data.decodeText(bomb, "base64+zstd"); err == nil || err.Error() != "data is not base64+zstd" {
		t.Errorf("packed: err = %v", err)
	}
	if _, err := data.decodeText(strings.Repeat("AAAA", maxDataBytes/3+1), "base64"); err != errDataTooLong {
		t.Errorf("plain: err = %v, want %v", err, errDataTooLong)
	}
}

func TestBase58DecodesLikeAnother(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.SliceOfN(rapid.Byte(), 0, 200).Draw(t, "bytes")
		if rapid.Bool().Draw(t, "zeros in front") {
			want = append(make([]byte, 3), want...)
		}
		got, err := decodeBase58(base58.Encode(want))
		if err != nil || string(got) != string(want) {
			t.Fatalf("got %x, %v; want %x", got, err, want)
		}
	})
}
