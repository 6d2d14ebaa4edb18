package geyser

import (
	"fmt"
	"testing"

	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"

	"ledgerd/engine/ledger"
	"ledgerd/engine/source/nodetest"
	"ledgerd/engine/source/yellowstone"
)

// checkRequest compares a request with what it is to be, written as text.
func checkRequest(t *testing.T, request []byte, text string) {
	t.Helper()
	got, want := nodetest.NewMessage("SubscribeRequest"), nodetest.NewMessage("SubscribeRequest")
	must(t, prototext.Unmarshal([]byte(text), want))
	if err := proto.Unmarshal(request, got); err != nil || !proto.Equal(got, want) {
		t.Errorf("%v\n got %v\nwant %v", err, got, want)
	}
}

func TestPingsAreWrittenAsDocumented(t *testing.T) {
	checkRequest(t, encodePing(), "ping { id: 1 }")
}

// Whatever is asked for, dynamicpb reads it from the request, and nothing else.
func FuzzSubscription(f *testing.F) {
	for n := range 16 {
		f.Add(n&1 > 0, n&2 > 0, n&4 > 0, uint64(n)<<50+uint64(n), n&8 > 0)
	}
	f.Fuzz(func(t *testing.T, sliced, noTransactions, skipVotes bool, from uint64, hasFrom bool) {
		s := subscription{sliced: sliced, noTransactions: noTransactions, skipVotes: skipVotes}
		keys := ""
		for n := range byte(from % 3) {
			s.accounts = append(s.accounts, ledger.Pubkey{n, 1})
			keys += fmt.Sprintf(" account: %q", ledger.Pubkey{n, 1})
		}
		text := `accounts { key: "ledgerd" value {` + keys + `} } blocks_meta { key: "ledgerd" value {} } commitment: PROCESSED
			slots { key: "ledgerd" value { interslot_updates: true } }`
		switch {
		case noTransactions:
		case skipVotes:
			text += ` transactions { key: "ledgerd" value { vote: false } } transactions_status { key: "ledgerd" value { vote: true } }`
		default:
			text += ` transactions { key: "ledgerd" value {} }`
		}
		if hasFrom {
			s.from = ledger.Some(ledger.Slot(from))
			text += fmt.Sprintf(" from_slot: %d", from)
		}
		if sliced {
			for _, slice := range yellowstone.DataSlices() {
				text += fmt.Sprintf(" accounts_data_slice { offset: %d length: %d }", slice.Offset, slice.Length)
			}
		}
		checkRequest(t, s.encode(), text)
	})
}
