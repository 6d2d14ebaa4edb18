package nodetest

import (
	"errors"

	"google.golang.org/protobuf/encoding/protowire"

	"ledgerd/engine/ledger"
)

// Request is a geyser.SubscribeRequest, as far as a follower of a whole ledger uses it.
type Request struct {
	filters   map[messageKind]string // the names of those asked for
	accounts  map[ledger.Pubkey]bool // whose writes are asked for; empty: of all
	noVotes   bool                   // transactions are asked for but for votes, which no ledger here has; of those, the statuses may be
	interslot bool                   // statuses before processed too
	Slices    []slice
	ping      ledger.Opt[uint64]
	FromSlot  ledger.Opt[ledger.Slot]
}

var errRequest = errors.New("the request is malformed, or asks for what this node does not know")

// field is a field of a message: a number or bytes.
type field struct {
	number protowire.Number
	value  uint64
	bytes  []byte
}

// fields returns the fields of a message in order.
func fields(b []byte) (all []field, err error) {
	for len(b) > 0 {
		var f field
		n, kind, size := protowire.ConsumeTag(b)
		f.number, b = n, b[max(size, 0):]
		switch {
		case size >= 0 && kind == protowire.VarintType:
			f.value, size = protowire.ConsumeVarint(b)
		case size >= 0 && kind == protowire.BytesType:
			f.bytes, size = protowire.ConsumeBytes(b)
		default:
			return nil, errRequest
		}
		if size < 0 {
			return nil, errRequest
		}
		all, b = append(all, f), b[size:]
	}
	return all, nil
}

// ParseRequest reads accounts 1, slots 2, transactions 3, blocks_meta 5, transactions_status 10 (maps from a name to a filter), commitment 6, which
// is processed, accounts_data_slice 7, ping 9, from_slot 11. It refuses everything else.
func ParseRequest(b []byte) (*Request, error) {
	r := &Request{filters: make(map[messageKind]string), accounts: make(map[ledger.Pubkey]bool)}
	all, err := fields(b)
	if err != nil {
		return nil, err
	}
	filters := map[protowire.Number]messageKind{1: accountMessage, 2: slotMessage, 3: transactionMessage, 5: metaMessage, 10: statusMessage}
	for _, f := range all {
		inner, err := fields(f.bytes)
		switch kind := filters[f.number]; {
		case err != nil:
		case kind != 0:
			err = r.filter(kind, inner)
		case f.number == 6 && f.value == 0:
		case f.number == 7:
			err = r.slice(inner)
		case f.number == 9:
			r.ping.Known = true
			for _, id := range inner {
				r.ping.Value = id.value
			}
		case f.number == 11:
			r.FromSlot = ledger.Some(ledger.Slot(f.value))
		default:
			err = errRequest
		}
		if err != nil {
			return nil, err
		}
	}
	return r, nil
}

// filter reads an entry of a map: the name 1, the filter 2. Of accounts there is account 2, of slots interslot_updates 2.
func (r *Request) filter(kind messageKind, entry []field) error {
	for _, e := range entry {
		if e.number == 1 {
			r.filters[kind] = string(e.bytes)
			continue
		}
		options, err := fields(e.bytes)
		if err != nil {
			return err
		}
		for _, o := range options {
			switch {
			case kind == transactionMessage && o.number == 1 && o.value == 0:
				r.noVotes = true
			case kind == statusMessage && o.number == 1 && o.value == 1:
			case kind == slotMessage && o.number == 2:
				r.interslot = o.value != 0
			case kind == accountMessage && o.number == 2:
				key, err := ledger.ParsePubkey(string(o.bytes))
				if err != nil {
					return errRequest
				}
				r.accounts[key] = true
			default:
				return errRequest
			}
		}
	}
	return nil
}

// slice reads a data slice: offset 1, length 2. Slices neither overlap nor go back.
func (r *Request) slice(part []field) error {
	var s slice
	for _, f := range part {
		if f.number == 1 {
			s.Offset = f.value
		} else {
			s.Length = f.value
		}
	}
	if n := len(r.Slices); n > 0 && r.Slices[n-1].Offset+r.Slices[n-1].Length > s.Offset || s.Offset+s.Length < s.Offset {
		return errRequest
	}
	r.Slices = append(r.Slices, s)
	return nil
}

// any reports whether the request asks for all accounts or all transactions, which a server may refuse (check_any of
// plugin/filter/limits.rs).
func (r *Request) any() bool {
	_, accounts := r.filters[accountMessage]
	_, transactions := r.filters[transactionMessage]
	return accounts && len(r.accounts) == 0 || transactions && !r.noVotes
}

// Excludes reports whether an update is of a transaction, and the request asks for none.
func (r *Request) Excludes(update Wire) bool {
	number, _, _ := protowire.ConsumeTag(update)
	return messageKind(number) == transactionMessage && r.filters[transactionMessage] == ""
}

// passes returns the name of the filter that a message passes, and whether it is sent at all. A write passes by what it leaves
// (FilterAccounts::get_updates of plugin/filter/filter.rs): its key is what the write before had, its owner need not be.
func (r *Request) passes(m *message) (name string, sent bool) {
	switch name, sent = r.filters[m.kind]; m.kind {
	case accountMessage:
		sent = sent && (len(r.accounts) == 0 || r.accounts[m.write.Pubkey])
	case slotMessage:
		sent = sent && (r.interslot || m.status <= slotFinalized || m.status == slotDead)
	}
	return name, sent
}
