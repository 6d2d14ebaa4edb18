package geyser

import (
	"fmt"
	"testing"

	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/ledgertest"
	"ledgerd/engine/source/nodetest"
)

// Requests are written as geyser.proto documents them.
func TestRequestsAreWrittenAsDocumented(t *testing.T) {
	const (
		heads       = `slots { key: "ledgerd" value { interslot_updates: true } } blocks_meta { key: "ledgerd" value {} } commitment: PROCESSED `
		allAccounts = `accounts { key: "ledgerd" value {} } `
		slices      = `accounts_data_slice { offset: 0 length: 82 } accounts_data_slice { offset: 82 length: 1 } accounts_data_slice { offset: 83 length: 82 }
			accounts_data_slice { offset: 165 length: 1 } accounts_data_slice { offset: 354 length: 1 } accounts_data_slice { offset: 355 length: 1 } `
		transactions = `transactions { key: "ledgerd" value {} } `
		noVotes      = `transactions { key: "ledgerd" value { vote: false } } transactions_status { key: "ledgerd" value { vote: true } } `
	)
	listed := []ledger.Pubkey{keyOf(1), keyOf(2)}
	for _, tt := range []struct {
		asked subscription
		want  string // beside heads
	}{
		{subscription{}, allAccounts + transactions},
		{subscription{from: ledger.Some(ledger.Slot(0))}, allAccounts + transactions + "from_slot: 0"},
		{subscription{skipVotes: true, from: ledger.Some(ledger.Slot(1 << 40))}, allAccounts + noVotes + "from_slot: 1099511627776"},
		{subscription{skipVotes: true, noTransactions: true, sliced: true}, allAccounts + slices},
		{subscription{noTransactions: true, accounts: listed}, fmt.Sprintf(`accounts { key: "ledgerd" value { account: %q account: %q } }`, listed[0], listed[1])},
	} {
		checkRequest(t, tt.asked.encode(), heads+tt.want)
	}
	checkRequest(t, encodePing(), "ping { id: 1 }")
}

// checkRequest compares a request with what it is to be, written as text.
func checkRequest(t *testing.T, request []byte, text string) {
	t.Helper()
	got, want := nodetest.NewMessage("SubscribeRequest"), nodetest.NewMessage("SubscribeRequest")
	must(t, prototext.Unmarshal([]byte(text), want))
	must(t, proto.Unmarshal(request, got))
	ledgertest.Holds(t, proto.Equal(got, want), "got %v\nwant %v", got, want)
}
