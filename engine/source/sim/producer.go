package sim

import (
	"crypto/sha256"
	"encoding/binary"

	"ledgerd/engine/ledger"
)

// lamportsPerSignature is the fee of a transaction for each of its signatures.
const lamportsPerSignature = 5000

// tip is a block to build on.
type tip struct {
	slot   ledger.Slot
	hash   ledger.Hash
	height uint64
}

// producer makes blocks out of a world. It leaves the world as it stands after the
// block it made last.
type producer struct {
	*world
	schedule schedule
	zipf     zipf // nil: wallets and holdings are drawn uniformly

	// Of the block being made.
	random  random
	block   *ledger.Block
	leader  ref    // the identity that gets the fees
	fees    uint64 // of the block so far
	content []byte // what the block's hash covers so far
}

func newProducer(p *params, w *world) *producer {
	made := &producer{world: w, schedule: newSchedule(p, w.identities.count)}
	if p.zipf != 0 {
		made.zipf = newZipf(int(w.wallets.count), p.zipf)
	}
	return made
}

// produce makes the block of a slot on top of its parent, which must be the block the
// world stands at.
func (p *producer) produce(slot ledger.Slot, parent tip) *ledger.Block {
	payments := dueBetween(p.schedule.paymentsDue, slot, parent.slot)
	votes := dueBetween(p.schedule.votesDue, slot, parent.slot)
	p.random.start(p.schedule.seed, uint64(slot))
	p.leader, p.fees = p.identities.at(p.schedule.leader(slot)), 0
	p.block = &ledger.Block{
		Slot: slot, ParentSlot: parent.slot, PreviousBlockhash: ledger.Some(parent.hash),
		Time: ledger.Some(p.schedule.time(slot)), Height: ledger.Some(parent.height + 1),
		Status:       ledger.Processed,
		Transactions: make([]ledger.Transaction, 0, payments+votes),
	}
	p.startContent(parent)
	for payments+votes > 0 {
		if p.random.below(payments+votes) < votes {
			votes--
			p.vote()
		} else {
			payments--
			p.pay()
		}
	}
	if p.fees > 0 {
		p.touch(p.leader).lamports += p.fees
	}
	p.hashTouched()
	b := p.block
	b.Accounts = p.writes()
	b.TransactionCount = uint64(len(b.Transactions))
	b.Blockhash = sha256.Sum256(p.content)
	return b
}

// failure is what transactions that fail do so with: an instruction that moves what is not there.
const failure = `{"InstructionError":[0,{"Custom":1}]}`

// transact charges a transaction to its first account and puts it in the block.
func (p *producer) transact(success bool, signatures uint64, accounts ...ref) {
	fee := signatures * lamportsPerSignature
	p.touch(accounts[0]).lamports -= fee
	p.fees += fee
	p.block.Transactions = append(p.block.Transactions, ledger.Transaction{})
	t := &p.block.Transactions[len(p.block.Transactions)-1]
	t.Slot, t.Time, t.Index = p.block.Slot, p.block.Time, uint32(len(p.block.Transactions)-1)
	t.Fee = ledger.Some(ledger.Lamports(fee))
	if t.Success = ledger.Some(success); !success {
		t.Err = failure
	}
	for i := 0; i < len(t.Signature); i += 8 {
		binary.LittleEndian.PutUint64(t.Signature[i:], p.random.pcg.Uint64())
	}
	t.Accounts = make([]ledger.Pubkey, len(accounts))
	for i, r := range accounts {
		t.Accounts[i] = p.keys[r]
	}
	p.hashTransaction(t, success, accounts)
}

// The hash of a block is SHA-256 over the following, little endian. Accounts are
// named by position, which the hash of genesis ties to keys.
//
//	parent hash 32, parent slot u64, slot u64, time i64, height u64
//	each transaction: 't', signature 64, success u8, fee u64, accounts u8, each u32
//	each account touched: 'a', position u32, lamports u64, amount u64, delegated u64, delegate u32, frozen u8

func (p *producer) startContent(parent tip) {
	b := append(p.content[:0], parent.hash[:]...)
	b = binary.LittleEndian.AppendUint64(b, uint64(parent.slot))
	b = binary.LittleEndian.AppendUint64(b, uint64(p.block.Slot))
	b = binary.LittleEndian.AppendUint64(b, uint64(p.block.Time.Value))
	p.content = binary.LittleEndian.AppendUint64(b, p.block.Height.Value)
}

func (p *producer) hashTransaction(t *ledger.Transaction, success bool, accounts []ref) {
	b := append(p.content, 't')
	b = append(b, t.Signature[:]...)
	b = append(b, flag(success))
	b = binary.LittleEndian.AppendUint64(b, uint64(t.Fee.Value))
	b = append(b, byte(len(accounts)))
	for _, r := range accounts {
		b = binary.LittleEndian.AppendUint32(b, r)
	}
	p.content = b
}

func (p *producer) hashTouched() {
	b := p.content
	for _, r := range p.touched {
		c := &p.cells[r]
		b = append(b, 'a')
		b = binary.LittleEndian.AppendUint32(b, r)
		b = binary.LittleEndian.AppendUint64(b, c.lamports)
		b = binary.LittleEndian.AppendUint64(b, c.amount)
		b = binary.LittleEndian.AppendUint64(b, c.delegated)
		b = binary.LittleEndian.AppendUint32(b, c.delegate)
		b = append(b, flag(c.frozen))
	}
	p.content = b
}

func flag(v bool) byte {
	if v {
		return 1
	}
	return 0
}
