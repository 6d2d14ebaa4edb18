package yellowstone

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/bufbuild/protocompile"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"

	"ledgerd/engine/ledger"
)

// documented returns an empty message of geyser.proto.
func documented(t testing.TB, name protoreflect.Name) *dynamicpb.Message {
	t.Helper()
	c := protocompile.Compiler{Resolver: &protocompile.SourceResolver{ImportPaths: []string{"../geyser"}}}
	files, err := c.Compile(t.Context(), "geyser.proto")
	if err != nil {
		t.Fatal(err)
	}
	return dynamicpb.NewMessage(files[0].Messages().ByName(name))
}

// fill sets fields of a message at random, and adds some that geyser.proto does not name.
func fill(r *rand.Rand, m protoreflect.Message) {
	fields := m.Descriptor().Fields()
	chosen := r.IntN(max(1, fields.Len())) // of a oneof
	for i := range fields.Len() {
		f := fields.Get(i)
		one := f.ContainingOneof()
		switch {
		case one != nil && !one.IsSynthetic() && i != chosen, r.IntN(8) == 0:
		case f.IsList():
			for list := m.Mutable(f).List(); r.IntN(3) > 0; {
				list.Append(valueOf(r, f))
			}
		case f.Message() != nil:
			fill(r, m.Mutable(f).Message())
		default:
			m.Set(f, valueOf(r, f))
		}
	}
	unknown := protowire.AppendFixed64(protowire.AppendTag(nil, 71, protowire.Fixed64Type), 7)
	unknown = protowire.AppendFixed32(protowire.AppendTag(unknown, 72, protowire.Fixed32Type), 7)
	m.SetUnknown(protowire.AppendBytes(protowire.AppendTag(unknown, 73, protowire.BytesType), []byte("more")))
}

// valueOf makes up a value as servers send it, with keys that are short now and then.
func valueOf(r *rand.Rand, f protoreflect.FieldDescriptor) protoreflect.Value {
	size := 32 - r.IntN(40)/39
	switch {
	case f.Kind() == protoreflect.StringKind:
		size = 32
	case f.Name() == "signature":
		size += 32
	case f.Name() == "data":
		size = r.IntN(200)
	}
	b := make([]byte, size)
	for i := range b {
		b[i] = byte(r.IntN(3))
	}
	var v any = b
	switch f.Kind() {
	case protoreflect.BoolKind:
		v = r.IntN(2) > 0
	case protoreflect.EnumKind:
		v = protoreflect.EnumNumber(r.IntN(8))
	case protoreflect.Int64Kind:
		v = int64(r.Uint64())
	case protoreflect.StringKind:
		v = ledger.Hash(b).String()[r.IntN(40)/39:]
	case protoreflect.Uint64Kind:
		v = r.Uint64N(1 << r.IntN(40))
	}
	if f.Name() == "owner" && r.IntN(2) > 0 {
		v = ledger.TokenProgram[:]
	}
	return protoreflect.ValueOf(v)
}

// reading is how dynamicpb reads a message.
type reading struct {
	message protoreflect.Message
	bad     bool // a key, a hash or a number is not as it must be
}

// at returns the field with the path "name.name…", and whether it is there.
func (d *reading) at(path string) (v protoreflect.Value, has bool) {
	v = protoreflect.ValueOfMessage(d.message)
	for name := range strings.SplitSeq(path, ".") {
		m := v.Message()
		f := m.Descriptor().Fields().ByName(protoreflect.Name(name))
		v, has = m.Get(f), m.Has(f)
	}
	return v, has
}

func (d *reading) has(path string) bool {
	_, has := d.at(path)
	return has
}

func (d *reading) get(path string) protoreflect.Value {
	v, _ := d.at(path)
	return v
}

func (d *reading) uint(path string) uint64 { return d.get(path).Uint() }

func (d *reading) bytes(path string, size int) []byte {
	b := d.get(path).Bytes()
	d.bad = d.bad || len(b) != size
	return append(b, make([]byte, size)...)[:size]
}

func (d *reading) keys(path string) (keys []ledger.Pubkey) {
	list := d.get(path).List()
	for i := range list.Len() {
		var k ledger.Pubkey
		d.bad = d.bad || copy(k[:], list.Get(i).Bytes()) < len(k)
		keys = append(keys, k)
	}
	return keys
}

func (d *reading) hash(path string) ledger.Hash {
	h, err := ledger.ParseHash(d.get(path).String())
	d.bad = d.bad || err != nil
	return h
}

// update returns the update that the message is.
func (d *reading) update() (u Update) {
	which := d.message.WhichOneof(d.message.Descriptor().Oneofs().Get(0))
	if which == nil || which.Name() == "ping" {
		u.Kind = map[bool]Kind{true: Ping}[which != nil]
		return u
	}
	d.message = d.message.Get(which).Message()
	u.Slot, u.Bank = ledger.Slot(d.uint("slot")), d.uint("bank_id")
	switch which.Name() {
	case "account":
		u.Kind, u.Startup, u.WriteVersion = Account, d.get("is_startup").Bool(), d.uint("account.write_version")
		u.Write = ledger.AccountWrite{
			Pubkey: ledger.Pubkey(d.bytes("account.pubkey", 32)), Owner: ledger.Pubkey(d.bytes("account.owner", 32)),
			Lamports: ledger.Lamports(d.uint("account.lamports")), Executable: d.get("account.executable").Bool(),
			RentEpoch: d.uint("account.rent_epoch"), Known: ledger.FieldsShown,
		}
		if u.Write.SetTokenFacts(d.get("account.data").Bytes()); u.Write.Lamports == 0 {
			u.Write = ledger.AccountWrite{Pubkey: u.Write.Pubkey}
		}
	case "slot":
		u.Kind, u.Status = Slot, SlotStatus(d.get("status").Enum())
	case "transaction":
		u.Kind = Transaction
		signature := ledger.Signature(d.bytes("transaction.signature", 64))
		u.Transaction = ledger.Transaction{Signature: signature, Index: uint32(d.uint("transaction.index"))}
		u.Transaction.Accounts = d.keys("transaction.transaction.message.account_keys")
		if d.has("transaction.meta") {
			u.Transaction.Success = ledger.Some(!d.has("transaction.meta.err"))
			u.Transaction.Fee = ledger.Some(ledger.Lamports(d.uint("transaction.meta.fee")))
			loaded := slices.Concat(d.keys("transaction.meta.loaded_writable_addresses"), d.keys("transaction.meta.loaded_readonly_addresses"))
			u.Transaction.Accounts = append(u.Transaction.Accounts, loaded...)
		}
		d.bad = d.bad || d.uint("transaction.index") > maxTransactions
	case "block_meta":
		u.Kind = Meta
		u.Head = Head{Hash: d.hash("blockhash"), ParentSlot: ledger.Slot(d.uint("parent_slot"))}
		u.Head.Transactions = d.uint("executed_transaction_count")
		if d.has("parent_blockhash") {
			u.Head.ParentHash = ledger.Some(d.hash("parent_blockhash"))
		}
		if d.has("block_time") {
			u.Head.Time = ledger.Some(d.get("block_time.timestamp").Int())
		}
		if d.has("block_height") {
			u.Head.Height = ledger.Some(d.uint("block_height.block_height"))
		}
		d.bad = d.bad || u.Slot != 0 && u.Head.ParentSlot >= u.Slot
	}
	return u
}

// Messages with every field of geyser.proto are read as dynamicpb reads them, and refused where they lack something.
func TestMessagesAreReadAsDocumented(t *testing.T) {
	empty := documented(t, "SubscribeUpdate")
	kinds, refused := map[Kind]int{}, 0
	for seed := range uint64(4000) {
		r := rand.New(rand.NewPCG(seed, 1))
		m := dynamicpb.NewMessage(empty.Descriptor())
		fill(r, m)
		message, err := proto.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		var got Update
		err = Decode(message, &got)
		d := reading{message: m}
		want := d.update()
		if d.bad != (err != nil) || err == nil && !reflect.DeepEqual(got, want) {
			t.Fatalf("seed %d: %v: %v, refused %v\n got %+v\nwant %+v", seed, m, err, d.bad, got, want)
		}
		if err != nil {
			refused++
		} else {
			kinds[got.Kind]++
		}
	}
	for kind := Other; kind <= Ping; kind++ {
		if kinds[kind] < 100 {
			t.Errorf("%d messages of kind %d were read, %d refused", kinds[kind], kind, refused)
		}
	}
}

// A message as a server would write it, field by field.
type wire []byte

func (w wire) number(field protowire.Number, v uint64) wire {
	return protowire.AppendVarint(protowire.AppendTag(w, field, protowire.VarintType), v)
}

func (w wire) bytes(field protowire.Number, b []byte) wire {
	return protowire.AppendBytes(protowire.AppendTag(w, field, protowire.BytesType), b)
}

func update(field protowire.Number, part wire) wire { return wire(nil).bytes(field, part) }

func TestTheLastPartOfAMessageCounts(t *testing.T) {
	var got Update
	message := append(update(3, wire(nil).number(1, 9).number(5, 7)), update(3, wire(nil).number(1, 10).number(3, uint64(Dead)))...)
	if want := statusOf(10, Dead); Decode(message, &got) != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// F27: a message that is cut, of wrong types or out of range is refused.
func TestBadMessagesAreRefused(t *testing.T) {
	k := key(1)
	tests := map[string]struct {
		message wire
		want    string
	}{
		"cut in a length":          {wire{0x12, 0x7f, 1}, "cut short"},
		"a group":                  {wire{0x13}, "cut short"},
		"a tag without end":        {wire{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, "cut short"},
		"an account as a number":   {wire(nil).number(2, 1), "another type"},
		"a short key":              {update(2, wire(nil).bytes(1, wire(nil).bytes(1, k[:31]))), "an account: its key has 31 bytes"},
		"lamports as bytes":        {update(2, wire(nil).bytes(1, wire(nil).bytes(2, nil))), "an account: a field"},
		"a long hash":              {update(7, wire(nil).number(1, 9).bytes(2, []byte(strings.Repeat("1", 45)))), "a block's head: a hash is not base58"},
		"no hash":                  {update(7, wire(nil).number(1, 9)), "a block's head: it has no hash"},
		"an index beyond any":      {update(4, wire(nil).bytes(1, wire(nil).bytes(1, make([]byte, 64)).number(5, 1<<40))), "a transaction: its index is 1099511627776"},
		"a status that is no word": {update(3, wire(nil).bytes(3, []byte("dead"))), "a slot's status: a field"},
	}
	for name, tt := range tests {
		if err := Decode(tt.message, new(Update)); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
	}
}

// F27: FuzzDecode feeds what no server sends. Whatever it is, it is read or refused.
func FuzzDecode(f *testing.F) {
	m := documented(f, "SubscribeUpdate")
	for seed := range uint64(20) {
		fill(rand.New(rand.NewPCG(seed, 2)), m)
		message, err := proto.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(message)
	}
	f.Fuzz(func(t *testing.T, message []byte) {
		var u Update
		if err := Decode(message, &u); err != nil {
			return
		}
		_ = NewAssembler(discard).Take(t.Context(), &u)
	})
}
