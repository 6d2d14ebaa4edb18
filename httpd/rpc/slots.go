package rpc

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"ledgerd/engine/ledger"
	"ledgerd/httpd/encode"
)

// validBlocks is how many blocks after its own a block hash may be used: MAX_PROCESSING_AGE of Agave.
const validBlocks = 150

// appendContext begins a result that tells what it was answered from: the view of the call.
func (c *call) appendContext(dst []byte) []byte {
	dst = append(append(dst, `{"context":{"apiVersion":`...), c.door.version...)
	return append(encode.AppendNumber(dst, `,"slot":`, c.view.Tip().Slot), `},"value":`...)
}

// from notes the view that a question was answered from: further ones of the call are asked at that version, by that deadline.
func (c *call) from(v ledger.View, err error) error {
	c.view, c.query.Head, c.query.Deadline = v, v.Head, v.Deadline
	return err
}

// isLate reports whether the deadline of the call has passed.
func (c *call) isLate() bool {
	return !c.query.Deadline.IsZero() && time.Until(c.query.Deadline) <= 0
}

// newest returns the newest block of the commitment of the call, without transactions: nil on a node that holds the state of a slot and no block.
func (c *call) newest() (*ledger.Block, error) {
	if c.wrong != nil {
		return nil, c.wrong
	}
	a, v, err := c.door.config.Ledger.LatestBlock(c.query)
	if err = c.from(v, err); errors.Is(err, ledger.ErrNotFound) && v.Head != nil && v.Head.HasSlot() {
		return nil, nil
	}
	return a.Block, err
}

// heightOf returns the height of a block. Some sources tell none.
func heightOf(b *ledger.Block) (uint64, error) {
	if b == nil || !b.Height.Known {
		return 0, elsewhere(codeNotAvailable, "Block not available: the source does not tell the height of its blocks")
	}
	return b.Height.Value, nil
}

// head reads a configuration at i and returns the newest block, see newest.
func (c *call) head(i int) (*ledger.Block, error) {
	c.config(i)
	return c.newest()
}

func (c *call) slotNow(dst []byte) ([]byte, error) {
	if _, err := c.head(0); err != nil {
		return dst, err
	}
	return encode.AppendNumber(dst, "", c.view.Tip().Slot), nil
}

func (c *call) blockHeight(dst []byte) ([]byte, error) {
	b, err := c.head(0)
	if err != nil {
		return dst, err
	}
	height, err := heightOf(b)
	return encode.AppendNumber(dst, "", height), err
}

// epochInfo answers without the height where the source tells none, and without the count of all transactions ever, which the node does not know.
func (c *call) epochInfo(dst []byte) ([]byte, error) {
	b, err := c.head(0)
	if err != nil {
		return dst, err
	}
	slot, slots := uint64(c.view.Tip().Slot), c.door.config.SlotsPerEpoch
	dst = encode.AppendNumber(dst, `{"absoluteSlot":`, slot)
	if b != nil && b.Height.Known {
		dst = encode.AppendNumber(dst, `,"blockHeight":`, b.Height.Value)
	}
	return fmt.Appendf(dst, `,"epoch":%d,"slotIndex":%d,"slotsInEpoch":%d}`, slot/slots, slot%slots, slots), nil
}

// epochSchedule answers a schedule without epochs of growing length at its begin, as public clusters have it.
func (c *call) epochSchedule(dst []byte) ([]byte, error) {
	return fmt.Appendf(dst, `{"slotsPerEpoch":%d,"leaderScheduleSlotOffset":%[1]d,"warmup":false,"firstNormalEpoch":0,"firstNormalSlot":0}`,
		c.door.config.SlotsPerEpoch), nil
}

func (c *call) latestBlockhash(dst []byte) ([]byte, error) {
	b, err := c.head(0)
	if err != nil {
		return dst, err
	}
	height, err := heightOf(b)
	if err != nil {
		return dst, err
	}
	dst = encode.AppendKey(c.appendContext(dst), `{"blockhash":`, (*ledger.Pubkey)(&b.Blockhash))
	return append(encode.AppendNumber(dst, `,"lastValidBlockHeight":`, height+validBlocks), `}}`...), nil
}

// blockhashValid looks for the hash among the newest block and the 150 before it.
func (c *call) blockhashValid(dst []byte) ([]byte, error) {
	hash := parsed(c, c.param(0), "blockhash", 32, ledger.ParseHash[[]byte])
	b, err := c.head(1)
	if err != nil {
		return dst, err
	}
	valid := false
	for left := validBlocks; b != nil; left-- {
		if valid = b.Blockhash == hash; valid || left == 0 || b.ParentSlot >= b.Slot {
			break
		}
		a, _, err := c.door.config.Ledger.Block(c.query, b.ParentSlot)
		if errors.Is(err, ledger.ErrNotFound) {
			return dst, elsewhere(codeNotAvailable, "Block not available: this node does not hold the last 150 blocks yet")
		}
		if err != nil {
			return dst, err
		}
		b = a.Block
	}
	return append(strconv.AppendBool(c.appendContext(dst), valid), '}'), nil
}
