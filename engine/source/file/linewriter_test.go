package file

import (
	"crypto/sha256"
	"fmt"
	"testing"

	"ledgerd/engine/codec"
	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/datatest"
	"ledgerd/engine/ledger/ledgertest"
	"ledgerd/engine/source/nodejson"
)

// allData are all programs.
var allData, _ = ledger.ParseDataPrograms("all")

// parse returns the event of a line, with all data that it tells.
func parse(line []byte) (ledger.Event, error) {
	data := &nodejson.DataDecoder{Held: allData}
	defer data.Close()
	return decodeLine(line, data)
}

// What means nothing in an event is left out.
func TestEventLinesLeaveOutWhatMeansNothing(t *testing.T) {
	key, k := keyOf(1), testKey(1)
	mint := ledger.Mint{Decimals: 2, Provenance: 7}
	got := string(AppendEventLine(nil, &ledger.BaseState{Slot: 2, Mints: []ledger.MintWrite{{Pubkey: key, Mint: mint}}, Accounts: []ledger.AccountWrite{{
		Pubkey: key, Lamports: 1, Owner: key, Executable: true, RentEpoch: 7, Known: ledger.FieldToken | ledger.FieldMint, Mint: &mint,
		Token: &ledger.TokenAccount{Mint: key, Owner: key, Amount: 1}, TokenOwnerUnknown: true,
	}}}))
	want := fmt.Sprintf(`{"type":"accounts","slot":2,"accounts":[{"pubkey":%q,"lamports":1,"token":{"mint":%q,"amount":"1","is_native":false},"mint":{"decimals":2}},{"pubkey":%q,"mint":{"decimals":2}}]}`, k, k, k)
	ledgertest.Equal(t, got, want+"\n", "the line")
}

// goldenLines hold events that between them use all there is to say.
const goldenLines = "testdata/events.ndjson"

// Golden lines are released: they stay readable, and are written the same. The pin is of the events that they mean, in the
// encoding of package codec: it was made of events that were written down field by field.
func TestEventLinesAreWrittenAsReleased(t *testing.T) {
	list := events(t, goldenLines)
	ledgertest.Equal(t, eventLinesOf(list), string(datatest.Read(t, goldenLines)), "the lines")
	const pin = "eb2e7fc60327747c5d99931c31dccab140ade43ef63fa213120f45a8794a29f0"
	var encoded []byte
	for _, e := range list {
		encoded = codec.AppendEvent(encoded, e)
	}
	ledgertest.Equal(t, fmt.Sprintf("%x", sha256.Sum256(encoded)), pin, "the hash of the events that the lines are read as, %x", encoded)
}
