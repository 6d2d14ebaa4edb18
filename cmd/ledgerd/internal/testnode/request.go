package testnode

import (
	"errors"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"

	"ledgerd/engine/ledger"
)

// subscribeRequest is a geyser.SubscribeRequest.
type subscribeRequest struct {
	accounts     []accountFilter
	slots        []slotFilter
	transactions []transactionFilter
	metas        []string // names alone
	entries      []string
	commitment   uint64
	slices       []slice
	ping         ledger.Opt[uint64]
	fromSlot     ledger.Opt[ledger.Slot]
}

type accountFilter struct {
	name           string
	keys, owners   []string
	withSignature  ledger.Opt[bool]
	otherCondition bool // memcmp and the like, which this node does not know
}

type slotFilter struct {
	name                    string
	byCommitment, interslot bool
}

type transactionFilter struct {
	name                                      string
	vote, failed                              ledger.Opt[bool]
	include, exclude, required, onlySignature []string
}

var errRequest = errors.New("the request is malformed")

// fields visits the fields of a message: a number or bytes each.
func fields(b []byte, visit func(n protowire.Number, v uint64, part []byte)) error {
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
		visit(n, v, part)
	}
	return nil
}

// parseRequest reads accounts 1, slots 2, transactions 3, blocks 4, blocks_meta 5 (maps from a name to a
// filter), commitment 6, accounts_data_slice 7, entry 8, ping 9, transactions_status 10, from_slot 11.
func parseRequest(b []byte) (*subscribeRequest, error) {
	r := &subscribeRequest{}
	var bad error
	note := func(err error) { bad = errors.Join(bad, err) }
	note(fields(b, func(n protowire.Number, v uint64, part []byte) {
		name, filter, err := entry(part)
		switch n {
		case 1:
			f, err := parseAccountFilter(name, filter)
			r.accounts = append(r.accounts, f)
			note(err)
		case 2:
			f := slotFilter{name: name}
			note(fields(filter, func(n protowire.Number, v uint64, _ []byte) {
				f.byCommitment = f.byCommitment || n == 1 && v != 0
				f.interslot = f.interslot || n == 2 && v != 0
			}))
			r.slots = append(r.slots, f)
		case 3:
			f, err := parseTransactionFilter(name, filter)
			r.transactions = append(r.transactions, f)
			note(err)
		case 5:
			r.metas = append(r.metas, name)
		case 6:
			r.commitment = v
		case 7:
			s := slice{}
			note(fields(part, func(n protowire.Number, v uint64, _ []byte) {
				switch n {
				case 1:
					s.offset = v
				case 2:
					s.length = v
				}
			}))
			if before := len(r.slices); before > 0 && r.slices[before-1].offset+r.slices[before-1].length > s.offset {
				note(errors.New("data slices overlap or are out of order"))
			}
			if s.offset+s.length < s.offset {
				note(errRequest)
			}
			r.slices = append(r.slices, s)
		case 8:
			r.entries = append(r.entries, name)
		case 9:
			r.ping.Known = true
			note(fields(part, func(_ protowire.Number, v uint64, _ []byte) { r.ping.Value = v }))
		case 11:
			r.fromSlot = ledger.Some(ledger.Slot(v))
		}
		if n <= 5 || n == 8 || n == 10 {
			note(err)
		}
	}))
	if r.commitment != 0 {
		note(errors.New("this node tells its stream at commitment processed alone"))
	}
	return r, bad
}

// entry reads an entry of a map: key 1, value 2.
func entry(b []byte) (name string, value []byte, err error) {
	err = fields(b, func(n protowire.Number, _ uint64, part []byte) {
		switch n {
		case 1:
			name = string(part)
		case 2:
			value = part
		}
	})
	return name, value, err
}

// parseAccountFilter reads account 2, owner 3, filters 4, nonempty_txn_signature 5.
func parseAccountFilter(name string, b []byte) (accountFilter, error) {
	f := accountFilter{name: name}
	err := fields(b, func(n protowire.Number, v uint64, part []byte) {
		switch n {
		case 2:
			f.keys = append(f.keys, string(part))
		case 3:
			f.owners = append(f.owners, string(part))
		case 4:
			f.otherCondition = true
		case 5:
			f.withSignature = ledger.Some(v != 0)
		}
	})
	if f.otherCondition {
		err = errors.Join(err, errors.New("this node knows no filters by content"))
	}
	return f, err
}

// parseTransactionFilter reads vote 1, failed 2, account_include 3, account_exclude 4, signature 5,
// account_required 6.
func parseTransactionFilter(name string, b []byte) (transactionFilter, error) {
	f := transactionFilter{name: name}
	err := fields(b, func(n protowire.Number, v uint64, part []byte) {
		switch n {
		case 1:
			f.vote = ledger.Some(v != 0)
		case 2:
			f.failed = ledger.Some(v != 0)
		case 3:
			f.include = append(f.include, string(part))
		case 4:
			f.exclude = append(f.exclude, string(part))
		case 5:
			f.onlySignature = append(f.onlySignature, string(part))
		case 6:
			f.required = append(f.required, string(part))
		}
	})
	return f, err
}

// passes returns the names of the filters that a message passes, and whether it is sent at all.
func (r *subscribeRequest) passes(m *message) (names []string, sent bool) {
	switch m.kind {
	case pingMessage, pongMessage:
		return nil, true
	case entryMessage:
		return r.entries, len(r.entries) > 0
	case metaMessage:
		return r.metas, len(r.metas) > 0
	case slotMessage:
		for _, f := range r.slots {
			if f.passes(m, r.commitment) {
				names = append(names, f.name)
			}
		}
	case accountMessage:
		for _, f := range r.accounts {
			if f.passes(m) {
				names = append(names, f.name)
			}
		}
	case transactionMessage:
		for _, f := range r.transactions {
			if f.passes(m) {
				names = append(names, f.name)
			}
		}
	}
	return names, len(names) > 0
}

func (f *slotFilter) passes(m *message, commitment uint64) bool {
	switch {
	case f.byCommitment:
		return uint64(m.status) == commitment
	case f.interslot:
		return true
	}
	return m.status <= slotFinalized || m.status == slotDead
}

func (f *accountFilter) passes(m *message) bool {
	if f.withSignature.Known && f.withSignature.Value != (m.signature != nil) {
		return false
	}
	if len(f.keys) == 0 && len(f.owners) == 0 {
		return true
	}
	return slices.Contains(f.keys, m.write.Pubkey.String()) || slices.Contains(f.owners, m.write.Owner.String())
}

func (f *transactionFilter) passes(m *message) bool {
	var keys []string
	for _, k := range m.tx.Accounts {
		keys = append(keys, k.String())
	}
	has := func(k string) bool { return slices.Contains(keys, k) }
	hasNot := func(k string) bool { return !has(k) }
	switch {
	case f.vote.Known && f.vote.Value != isVote(m.tx),
		f.failed.Known && f.failed.Value == m.tx.Success.Value,
		len(f.onlySignature) > 0 && !slices.Contains(f.onlySignature, m.tx.Signature.String()),
		len(f.include) > 0 && !slices.ContainsFunc(f.include, has),
		slices.ContainsFunc(f.exclude, has),
		slices.ContainsFunc(f.required, hasNot):
		return false
	}
	return true
}
