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

// Field numbers, as geyser.proto has them.
const (
	requestAccounts     protowire.Number = 1
	requestSlots        protowire.Number = 2
	requestTransactions protowire.Number = 3
	requestBlocksMeta   protowire.Number = 5
	requestCommitment   protowire.Number = 6
	requestDataSlice    protowire.Number = 7
	requestPing         protowire.Number = 9
	requestStatuses     protowire.Number = 10 // of transactions
	requestFromSlot     protowire.Number = 11

	mapKey, mapValue         protowire.Number = 1, 2
	sliceOffset, sliceLength protowire.Number = 1, 2
	accountsKey              protowire.Number = 2
	slotsInterslotUpdates    protowire.Number = 2
	transactionsVote         protowire.Number = 1
	pingID                   protowire.Number = 1

	commitmentProcessed = 0
)

// encode returns the subscription as a SubscribeRequest.
func (s *subscription) encode() []byte {
	var accounts []byte
	for i := range s.accounts {
		accounts = appendPart(accounts, accountsKey, s.accounts[i].AppendBase58(nil))
	}
	b := appendFilter(nil, requestAccounts, accounts)
	b = appendFilter(b, requestSlots, appendNumber(nil, slotsInterslotUpdates, 1))
	switch {
	case s.noTransactions:
	case s.skipVotes: // of a vote only its status comes: so a block's transactions can be counted
		b = appendFilter(b, requestTransactions, appendNumber(nil, transactionsVote, 0))
		b = appendFilter(b, requestStatuses, appendNumber(nil, transactionsVote, 1))
	default:
		b = appendFilter(b, requestTransactions, nil)
	}
	b = appendFilter(b, requestBlocksMeta, nil)
	b = appendNumber(b, requestCommitment, commitmentProcessed)
	if s.sliced {
		for _, slice := range yellowstone.DataSlices() {
			part := appendNumber(appendNumber(nil, sliceOffset, slice.Offset), sliceLength, slice.Length)
			b = appendPart(b, requestDataSlice, part)
		}
	}
	if s.from.Known {
		b = appendNumber(b, requestFromSlot, uint64(s.from.Value))
	}
	return b
}

// encodePing returns a request that tells the node that we are here.
func encodePing() []byte { return appendPart(nil, requestPing, appendNumber(nil, pingID, 1)) }

// appendFilter appends the one entry of a map from names to filters.
func appendFilter(b []byte, field protowire.Number, filter []byte) []byte {
	entry := appendPart(nil, mapKey, []byte("ledgerd"))
	return appendPart(b, field, appendPart(entry, mapValue, filter))
}

func appendNumber(b []byte, field protowire.Number, v uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.VarintType), v)
}

func appendPart(b []byte, field protowire.Number, part []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, field, protowire.BytesType), part)
}
