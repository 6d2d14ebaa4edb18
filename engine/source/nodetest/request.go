package nodetest

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"slices"
	"sync"

	"github.com/bufbuild/protocompile"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"

	"ledgerd/engine/ledger"
)

//go:embed geyser.proto
var protocol string

var messages = sync.OnceValues(func() (protoreflect.MessageDescriptors, error) {
	sources := &protocompile.SourceResolver{Accessor: protocompile.SourceAccessorFromMap(map[string]string{"geyser.proto": protocol})}
	files, err := (&protocompile.Compiler{Resolver: sources}).Compile(context.Background(), "geyser.proto")
	return files[0].Messages(), err
})

// NewMessage returns an empty message of geyser.proto.
func NewMessage(name protoreflect.Name) *dynamicpb.Message {
	all, err := messages()
	if err != nil {
		panic(err)
	}
	return dynamicpb.NewMessage(all.ByName(name))
}

// Request is a geyser.SubscribeRequest, as far as a follower of a whole ledger uses it, in the form that protojson gives it.
type Request struct {
	Accounts, Slots, Transactions, BlocksMeta filters
	TransactionsStatus                        filters // of votes alone, which no ledger here has
	Commitment                                string  // there is one only
	Slices                                    []slice `json:"accountsDataSlice"`
	Ping                                      *struct{ ID uint64 }
	From                                      *ledger.Slot            `json:"fromSlot,string"`
	FromSlot                                  ledger.Opt[ledger.Slot] `json:"-"` // the same
}

// filters have names. Which of them has which field is said by geyser.proto.
type filters map[string]struct {
	Account          []ledger.Pubkey // whose writes are asked for; empty: of all
	InterslotUpdates bool            // statuses before processed too
	Vote             *bool           // false, of transactions: all but votes; true, of statuses: those alone
}

// slice is a part of an account's data that a subscriber asked for.
type slice struct {
	Offset, Length uint64 `json:",string"`
}

var errRequest = errors.New("the request is malformed, or asks for what this node does not know")

// ParseRequest reads a request, and refuses one that has more than a Request.
func ParseRequest(b []byte) (*Request, error) {
	all, known := NewMessage("SubscribeRequest"), NewMessage("SubscribeRequest")
	if proto.Unmarshal(b, all) != nil || (proto.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(b, known) != nil || !proto.Equal(all, known) {
		return nil, errRequest
	}
	text, err := protojson.Marshal(known)
	r, d := new(Request), json.NewDecoder(bytes.NewReader(text))
	if d.DisallowUnknownFields(); err != nil || d.Decode(r) != nil {
		return nil, errRequest
	}
	if r.From != nil {
		r.FromSlot = ledger.Some(*r.From)
	}
	return r, nil
}

// any reports whether the request asks for all accounts or all transactions, which a server may refuse (check_any of
// plugin/filter/limits.rs).
func (r *Request) any() bool {
	for _, f := range r.Accounts {
		if len(f.Account) == 0 {
			return true
		}
	}
	for _, f := range r.Transactions {
		if f.Vote == nil {
			return true
		}
	}
	return false
}

// Excludes reports whether an update is of a transaction, and the request asks for none.
func (r *Request) Excludes(update Wire) bool {
	number, _, _ := protowire.ConsumeTag(update)
	return number == transactionMessage && len(r.Transactions) == 0
}

// passes returns the name of the filter that a message passes, and whether it is sent at all. A write passes by what it leaves
// (FilterAccounts::get_updates of plugin/filter/filter.rs): its key is what the write before had, its owner need not be.
func (r *Request) passes(m *message) (name string, sent bool) {
	of := map[messageKind]filters{accountMessage: r.Accounts, slotMessage: r.Slots, transactionMessage: r.Transactions, metaMessage: r.BlocksMeta}
	for name, f := range of[m.kind] {
		switch {
		case m.kind == slotMessage && !f.InterslotUpdates && m.status > slotFinalized && m.status != slotDead,
			len(f.Account) > 0 && !slices.Contains(f.Account, m.write.Pubkey):
			return "", false
		}
		return name, true
	}
	return "", false
}
