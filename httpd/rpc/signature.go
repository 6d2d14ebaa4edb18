package rpc

import (
	"errors"
	"fmt"
	"time"

	"ledgerd/engine/ledger"
	"ledgerd/httpd/stream"
)

// afterNumber is how long after its number a subscription is told what is known already. @solana/kit with npm's ws loses a notification that it
// reads together with the number: it listens for it only afterwards. With 5 ms it lost none of five. A client that is busy for longer still loses
// it, and kit's own confirmation asks for the status besides; traders do not wait longer for that.
const afterNumber = 20 * time.Millisecond

// signatureSubscribe has the client told once that a transaction has reached a level, afterNumber where it has already. The ledger, which shows a
// block before the hub tells of it, is asked after the hub watches: so no block falls between the two.
func (c *call) signatureSubscribe(socket *stream.Socket) error {
	sig := c.signature(c.param(0), "signature")
	received := c.isSet(c.config(1), "enableReceivedNotification")
	_, err := c.newest()
	if err == nil {
		err = socket.PayLookup(searched)
	}
	if err != nil {
		return err
	}
	level := c.query.Commitment
	var number uint64
	err = socket.Watch(fmt.Sprint("signature ", level, received, sig), stream.Topic{
		Kind: "signature", Level: level, Signature: ledger.Some(sig), Received: received, Append: appendOutcome,
	}, fromNow, func(n uint64) []byte {
		number = n
		return c.subscribed(n)
	})
	if err != nil {
		return err
	}
	tell := func(payload []byte, ends bool) {
		time.AfterFunc(afterNumber, func() { socket.Tell(number, payload, ends) })
	}
	a, v, err := c.door.config.Ledger.Transaction(ledger.Query{Commitment: ledger.Processed, Deadline: c.query.Deadline}, sig)
	switch {
	case errors.Is(err, ledger.ErrNotFound):
		return nil
	case err != nil:
		why := appendFault([]byte(`{"jsonrpc":"2.0","method":"signatureNotification","params":{"error":`), errorOf(err, v))
		tell(appendNumberOf(why, number), true)
		return nil
	}
	if below := a.Commitment < level; received || !below {
		note := stream.Note{Slot: a.Transaction.Slot, Transaction: a.Transaction, Received: below}
		tell(appendOutcome(nil, number, &note), !below)
	}
	return nil
}

// searched is as how many accounts a signature is paid for: 5,000 that were nowhere, neither in memory nor in three files of history, took 1 s.
const searched = 100

// appendOutcome appends what is told of a transaction: that a block has it, or what became of it.
func appendOutcome(dst []byte, number uint64, n *stream.Note) []byte {
	dst = fmt.Appendf(dst, `{"jsonrpc":"2.0","method":"signatureNotification","params":{"result":{"context":{"slot":%d},"value":`, n.Slot)
	if n.Received {
		dst = append(dst, `"receivedSignature"}`...)
	} else {
		dst = append(appendFailure(append(dst, `{"err":`...), n.Transaction), `}}`...)
	}
	return appendNumberOf(dst, number)
}
