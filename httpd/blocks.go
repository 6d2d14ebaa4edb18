package httpd

import "ledgerd/engine/ledger"

// latestBlock answers the newest block of the asked commitment.
func (r *request) latestBlock() error {
	q := r.params.query
	q.Parts = ledger.NoTransactions
	a, v, err := r.server.ledger.LatestBlock(q)
	if err != nil {
		return err
	}
	r.body = appendBlock(r.body, a.Block)
	r.answered(v)
	r.tagBody()
	return nil
}

// block answers the block at a slot. A finalized one will never read otherwise.
func (r *request) block() error {
	slot, ok := parseDecimal(r.variable)
	if !ok {
		return errSlot
	}
	q := r.params.query
	q.Parts = r.params.include.parts()
	a, v, err := r.server.ledger.Block(q, ledger.Slot(slot))
	if err != nil {
		return err
	}
	r.body = appendFullBlock(r.body, a, r.params.include)
	r.answered(v)
	r.tagBody()
	r.immutable = a.Commitment == ledger.Finalized
	return nil
}

// answered says which view the reply was computed from.
func (r *request) answered(v ledger.View) { r.view = v }

// tagBody gives the reply the entity tag of its whole body.
func (r *request) tagBody() { r.tagRecord(len(r.body)) }

// tagRecord gives the reply the entity tag of the first n bytes of its body.
func (r *request) tagRecord(n int) {
	r.tag, r.tagged = tagOf(r.body[:n], r.partial), true
}
