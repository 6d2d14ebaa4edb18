package testnode

import (
	"errors"

	"google.golang.org/protobuf/encoding/protowire"

	"ledgerd/engine/ledger"
)

// subscribeRequest is a geyser.SubscribeRequest, as far as a follower of a whole ledger uses it.
type subscribeRequest struct {
	filters   map[messageKind]string // the names of those asked for
	interslot bool                   // statuses before processed too
	skipVotes bool
	slices    []slice
	ping      ledger.Opt[uint64]
	fromSlot  ledger.Opt[ledger.Slot]
}

var errRequest = errors.New("the request is malformed, or asks for what this node does not know")

// fields visits the fields of a message: a number or bytes each.
func fields(b []byte, visit func(n protowire.Number, v uint64, part []byte) error) error {
	for len(b) > 0 {
		n, kind, size := protowire.ConsumeTag(b)
		if size < 0 {
			return errRequest
		}
		b = b[size:]
		var v uint64
		var part []byte
		switch kind {
		case protowire.VarintType:
			v, size = protowire.ConsumeVarint(b)
		case protowire.BytesType:
			part, size = protowire.ConsumeBytes(b)
		default:
			return errRequest
		}
		if size < 0 {
			return errRequest
		}
		b = b[size:]
		if err := visit(n, v, part); err != nil {
			return err
		}
	}
	return nil
}

// parseRequest reads accounts 1, slots 2, transactions 3, blocks_meta 5 (maps from a name to a filter), commitment 6, which
// is processed, accounts_data_slice 7, ping 9, from_slot 11. It refuses everything else.
func parseRequest(b []byte) (*subscribeRequest, error) {
	r := &subscribeRequest{filters: make(map[messageKind]string)}
	err := fields(b, func(n protowire.Number, v uint64, part []byte) error {
		switch n {
		case 1:
			return r.filter(accountMessage, part)
		case 2:
			return r.filter(slotMessage, part)
		case 3:
			return r.filter(transactionMessage, part)
		case 5:
			return r.filter(metaMessage, part)
		case 6:
			if v != 0 {
				return errRequest
			}
		case 7:
			return r.slice(part)
		case 9:
			r.ping.Known = true
			return fields(part, func(_ protowire.Number, v uint64, _ []byte) error {
				r.ping.Value = v
				return nil
			})
		case 11:
			r.fromSlot = ledger.Some(ledger.Slot(v))
		default:
			return errRequest
		}
		return nil
	})
	return r, err
}

// filter reads an entry of a map: the name 1, the filter 2. Of slots there is interslot_updates 2, of transactions vote 1.
func (r *subscribeRequest) filter(kind messageKind, entry []byte) error {
	return fields(entry, func(n protowire.Number, _ uint64, part []byte) error {
		if n == 1 {
			r.filters[kind] = string(part)
			return nil
		}
		return fields(part, func(n protowire.Number, v uint64, _ []byte) error {
			switch {
			case kind == slotMessage && n == 2:
				r.interslot = v != 0
			case kind == transactionMessage && n == 1 && v == 0:
				r.skipVotes = true
			default:
				return errRequest
			}
			return nil
		})
	})
}

// slice reads a data slice: offset 1, length 2. Slices neither overlap nor go back.
func (r *subscribeRequest) slice(part []byte) error {
	var s slice
	err := fields(part, func(n protowire.Number, v uint64, _ []byte) error {
		if n == 1 {
			s.offset = v
		} else {
			s.length = v
		}
		return nil
	})
	if n := len(r.slices); n > 0 && r.slices[n-1].offset+r.slices[n-1].length > s.offset || s.offset+s.length < s.offset {
		return errRequest
	}
	r.slices = append(r.slices, s)
	return err
}

// passes returns the name of the filter that a message passes, and whether it is sent at all.
func (r *subscribeRequest) passes(m *message) (name string, sent bool) {
	if m.kind == pingMessage || m.kind == pongMessage {
		return "", true
	}
	name, sent = r.filters[m.kind]
	switch m.kind {
	case slotMessage:
		sent = sent && (r.interslot || m.status <= slotFinalized || m.status == slotDead)
	case transactionMessage:
		sent = sent && !(r.skipVotes && isVote(m.tx))
	}
	return name, sent
}
