package geyser

import (
	"google.golang.org/protobuf/encoding/protowire"

	"ledgerd/engine/ledger"
	"ledgerd/engine/source/yellowstone"
)

// subscription is what a session asks for: everything at processed level, in one request.
type subscription struct {
	accounts       []ledger.Pubkey // empty: all
	sliced         bool            // the slices of data that tell what we keep, not all of it
	noTransactions bool
	skipVotes      bool
	from           ledger.Opt[ledger.Slot]
}

// encode returns the subscription as a SubscribeRequest: accounts 1 {account 2}, slots 2 {interslot_updates 2}, transactions 3 {vote 1},
// blocks_meta 5, commitment 6, accounts_data_slice 7 {offset 1, length 2}, transactions_status 10 {vote 1}, from_slot 11.
func (s *subscription) encode() []byte {
	var accounts []byte
	for i := range s.accounts {
		accounts = appendPart(accounts, 2, s.accounts[i].AppendBase58(nil))
	}
	b := appendFilter(nil, 1, accounts)
	b = appendFilter(b, 2, appendNumber(nil, 2, 1))
	switch {
	case s.noTransactions:
	case s.skipVotes: // of a vote only its status comes: so a block's transactions can be counted
		b = appendFilter(b, 3, appendNumber(nil, 1, 0))
		b = appendFilter(b, 10, appendNumber(nil, 1, 1))
	default:
		b = appendFilter(b, 3, nil)
	}
	b = appendFilter(b, 5, nil)
	b = appendNumber(b, 6, 0) // processed
	if s.sliced {
		for _, slice := range yellowstone.DataSlices() {
			b = appendPart(b, 7, appendNumber(appendNumber(nil, 1, slice.Offset), 2, slice.Length))
		}
	}
	if s.from.Known {
		b = appendNumber(b, 11, uint64(s.from.Value))
	}
	return b
}

// encodePing returns a request that tells the node that we are here: ping 9 {id 1}.
func encodePing() []byte { return appendPart(nil, 9, appendNumber(nil, 1, 1)) }

// appendFilter appends the one entry of a map from names to filters: key 1, value 2.
func appendFilter(b []byte, field protowire.Number, filter []byte) []byte {
	return appendPart(b, field, appendPart(appendPart(nil, 1, []byte("ledgerd")), 2, filter))
}

func appendNumber(b []byte, field protowire.Number, v uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.VarintType), v)
}

func appendPart(b []byte, field protowire.Number, part []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, field, protowire.BytesType), part)
}
