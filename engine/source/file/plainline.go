package file

import (
	"slices"

	"ledgerd/engine/ledger"
	"ledgerd/engine/source/nodejson"
)

// plainDecoder decodes event lines that are written plainly, as AppendEventLine and nearly
// every other program writes them, straight from the bytes of the line. It takes a sixth to an
// eighth of the time that encoding/json takes, and allocates little but what the event keeps.
//
// It never says what is wrong with a line. Whatever it does not know or like (an escape, a
// field of tomorrow or one given twice, a value out of range) it leaves to decodeLine, which
// is the only judge of lines. A line that it takes, decodeLine would take for the
// same event. What the values mean is decided for both by the methods of eventLine,
// lineTransaction and lineAccount.
//
// Decoding a line allocates a few times its length, up to six times in lines of the shortest
// items. The zero value is ready. It keeps scratch space between lines, of a bounded size.
type plainDecoder struct {
	scanner
	data *nodejson.DataDecoder

	head        plainHead
	transaction plainTransaction
	account     plainAccount

	// What the line lists, gathered here so that the lists of an event are made in their size.
	transactions []ledger.Transaction
	accounts     []ledger.AccountWrite
	mints        []ledger.MintWrite
}

// maxScratch bounds the items for which each list keeps room between lines: 1.5 MiB in all.
// The space of larger lines goes with their events, or to the garbage collector.
const maxScratch = 4096

// plainHead is an event line without its lists. The pointers lead to the values behind.
type plainHead struct {
	eventLine[[]byte]

	slot, parentSlot, blockHeight, transactionCount uint64
	blockTime                                       int64
	blockhash, previousBlockhash, commitment        []byte
	hasTransactions, hasAccounts                    bool
}

// plainTransaction is the transaction that is read just now.
type plainTransaction struct {
	lineTransaction[[]byte]

	success     bool
	fee         uint64
	hasAccounts bool
}

// decode returns the event of a line. It is not ok if decodeLine must be asked.
func (p *plainDecoder) decode(line []byte, data *nodejson.DataDecoder) (e ledger.Event, ok bool) {
	p.scanner, p.data = scanner{text: line}, data
	defer p.release()
	p.readLine()
	if p.peek(); p.failed || p.at < len(p.text) {
		return nil, false
	}
	e, err := p.head.event(len(p.transactions))
	if err != nil {
		return nil, false
	}
	switch e := e.(type) {
	case *ledger.Block:
		for _, t := range p.transactions {
			e.AddTransaction(t)
		}
		e.Accounts, e.Mints = p.writes()
	case *ledger.BaseState:
		e.Accounts, e.Mints = p.writes()
	}
	return e, true
}

// writes returns the account writes and mint facts of the line.
func (p *plainDecoder) writes() ([]ledger.AccountWrite, []ledger.MintWrite) {
	if len(p.mints) == 0 {
		return taken(p.accounts), nil
	}
	return taken(p.accounts), taken(p.mints)
}

// release lets go of the line and of what its event holds.
func (p *plainDecoder) release() {
	p.scanner, p.head, p.account = scanner{}, plainHead{}, plainAccount{}
	p.transactions = emptied(p.transactions)
	p.accounts = emptied(p.accounts)
	p.mints = emptied(p.mints)
	p.transaction = plainTransaction{lineTransaction: lineTransaction[[]byte]{Accounts: emptied(p.transaction.Accounts)}}
}

// appendItem appends an item of the list that begins at front. A long list that outgrows its
// room gets room for what would follow if its items stayed about as long as those so far: it
// is then moved once or twice, and not every time that it has grown by a quarter.
func appendItem[T any](s *scanner, front int, list []T, item T) []T {
	if n := len(list); n == cap(list) && n >= 64 {
		left := (len(s.text) - s.at) * n / (s.at - front)
		list = slices.Grow(list, left+left/16+1)
	}
	return append(list, item)
}

// taken returns the list as an event keeps it. What is too large for scratch space and nearly
// full is not copied.
func taken[T any](scratch []T) []T {
	if cap(scratch) > maxScratch && cap(scratch)-len(scratch) <= len(scratch)/8 {
		return scratch
	}
	list := make([]T, len(scratch))
	copy(list, scratch)
	return list
}

// emptied returns the scratch space without its items, or none if it has grown too large.
func emptied[T any](scratch []T) []T {
	if cap(scratch) > maxScratch {
		return nil
	}
	clear(scratch)
	return scratch[:0]
}

// readLine reads the object of a line into the head and the lists.
func (p *plainDecoder) readLine() {
	h := &p.head
	for more := p.open('{', '}'); more; more = p.more('}') {
		switch string(p.name()) {
		case "type":
			if p.value(h.Type != nil) {
				h.Type = p.plain()
			}
		case "slot":
			p.uintField(&h.Slot, &h.slot)
		case "parent_slot":
			p.uintField(&h.ParentSlot, &h.parentSlot)
		case "blockhash":
			p.plainField(&h.Blockhash, &h.blockhash)
		case "previous_blockhash":
			p.plainField(&h.PreviousBlockhash, &h.previousBlockhash)
		case "block_time":
			p.intField(&h.BlockTime, &h.blockTime)
		case "block_height":
			p.uintField(&h.BlockHeight, &h.blockHeight)
		case "commitment":
			p.plainField(&h.Commitment, &h.commitment)
		case "transaction_count":
			p.uintField(&h.TransactionCount, &h.transactionCount)
		case "transactions":
			p.readTransactions()
		case "accounts":
			p.readAccounts()
		case "status":
			if p.value(h.Status != nil) {
				h.Status = p.plain()
			}
		default:
			p.fail()
		}
	}
}

func (p *plainDecoder) readTransactions() {
	if !p.value(p.head.hasTransactions) {
		return
	}
	p.head.hasTransactions = true
	front := p.at
	for more := p.open('[', ']'); more; more = p.more(']') {
		p.readTransaction()
		t, err := p.transaction.transaction()
		if err != nil {
			p.fail()
			return
		}
		p.transactions = appendItem(&p.scanner, front, p.transactions, t)
	}
}

func (p *plainDecoder) readTransaction() {
	t := &p.transaction
	keys := t.Accounts[:0]
	t.lineTransaction, t.hasAccounts = lineTransaction[[]byte]{}, false
	for more := p.open('{', '}'); more; more = p.more('}') {
		switch string(p.name()) {
		case "signature":
			if p.value(t.Signature != nil) {
				t.Signature = p.raw()
			}
		case "success":
			p.boolField(&t.Success, &t.success)
		case "fee":
			p.uintField(&t.Fee, &t.fee)
		case "accounts":
			if !p.value(t.hasAccounts) {
				continue
			}
			t.hasAccounts = true
			front := p.at
			for more := p.open('[', ']'); more; more = p.more(']') {
				keys = appendItem(&p.scanner, front, keys, p.raw())
			}
		default:
			p.fail()
		}
	}
	t.Accounts = keys
}

func (p *plainDecoder) readAccounts() {
	if !p.value(p.head.hasAccounts) {
		return
	}
	p.head.hasAccounts = true
	front := p.at
	for more := p.open('[', ']'); more; more = p.more(']') {
		p.readAccount()
		w, err := p.account.write(p.data)
		switch {
		case err != nil:
			p.fail()
			return
		case p.account.Lamports == nil:
			p.mints = appendItem(&p.scanner, front, p.mints, ledger.MintWrite{Pubkey: w.Pubkey, Mint: *w.Mint})
		default:
			p.accounts = appendItem(&p.scanner, front, p.accounts, w)
		}
	}
}
