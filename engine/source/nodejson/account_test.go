package nodejson

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"ledgerd/engine/ledger/ledgertest"
)

func TestAccountDataIsBounded(t *testing.T) {
	data := new(DataDecoder)
	defer data.Close()
	z, err := zstd.NewWriter(nil)
	ledgertest.Must(t, err)
	bomb := base64.StdEncoding.EncodeToString(z.EncodeAll(make([]byte, maxDataBytes+1), nil))
	_, err = data.Decode(fmt.Appendf(nil, `[%q,"base64+zstd"]`, bomb), "")
	ledgertest.ErrorSays(t, err, "data is not base64+zstd", "packed")
	_, err = data.Decode(fmt.Appendf(nil, `["%s","base64"]`, strings.Repeat("AAAA", maxDataBytes/3+1)), "")
	ledgertest.ErrorIs(t, err, errDataTooLong, "plain")
}
