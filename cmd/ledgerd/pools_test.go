package main

import (
	"bytes"
	"context"
	"maps"
	"testing"

	"ledgerd/engine/ledger/ledgertest"
	clientlib "ledgerd/httpd/client"
)

const poolProgram = "PooL111111111111111111111111111111111111111"

// A stream of pools hears of each swap, though no lamports move: through forks and a restart, after which it resumes, it has the data that REST
// answers at the same slot.
func TestPoolsAreFollowedByTheirData(t *testing.T) {
	t.Parallel()
	args := []string{"--data-dir", t.TempDir(), "--data", "all", "--source", "sim:accounts=500,pools=4,slot_time=5ms,fork_rate=0.2,finality=8,slots=400"}
	held, changes := map[string][]byte{}, 0
	where := &clientlib.DataFilter{Size: new(uint64(160)), Parts: []clientlib.DataPart{{Offset: 154, Bytes: "111111"}}}
	follow := func(v *victim, after *uint64, fromSlot uint64) (seq uint64) {
		c, err := clientlib.New(v.base, clientlib.Options{})
		must(t, err)
		ctx, stop := context.WithTimeout(t.Context(), patience)
		defer stop()
		err = c.Stream(ctx, clientlib.Subscription{Programs: []string{poolProgram}, Data: true, Where: where, After: after}, clientlib.Handler{
			Start: func(at clientlib.Start) {
				if after != nil {
					t.Errorf("a stream that resumed after %d began anew at %d", *after, at.Seq)
				}
				clear(held)
			},
			Update: func(u clientlib.Update) {
				if u.Lamports != 2004480 || u.Space == nil || *u.Space != 160 || len(u.Data) != 160 {
					t.Errorf("an update of a pool is %+v", u)
				}
				if !bytes.Equal(held[u.Pubkey], u.Data) {
					changes++
				}
				held[u.Pubkey], seq = u.Data, u.Seq
			},
			SlotEnd: func(slot, newest uint64) {
				if seq = newest; slot < fromSlot {
					return
				}
				list, err := c.Program(ctx, poolProgram, clientlib.Page{Where: where}, clientlib.Read{Data: true})
				if err != nil || list.Slot != slot {
					return // it went on, or ended: the next block, or the error of the stream, tells
				}
				answered := map[string][]byte{}
				for _, a := range list.Value.Accounts {
					answered[a.Pubkey] = a.Data
				}
				if len(held) != 4 || !maps.EqualFunc(held, answered, bytes.Equal) {
					t.Errorf("slot %d: the stream has %x, REST %x", slot, held, answered)
				}
				stop()
			},
		})
		ledgertest.ErrorIs(t, err, context.Canceled, "the end of a stream")
		return seq
	}
	v := launch(t, args...).ready()
	seq := follow(v, nil, 100)
	v.stop()
	follow(launch(t, args...).ready(), &seq, 300)
	if changes < 100 {
		t.Errorf("the pools changed %d times, which shows little", changes)
	}
}
