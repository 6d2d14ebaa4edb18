package stream

import (
	"maps"
	"slices"
	"sort"
	"time"

	"ledgerd/engine/ledger"
	"ledgerd/httpd/stream/frame"
)

// retold encodes for one client what it has missed of a topic.
type retold struct {
	*Topic
	number uint64
	work   *work // of the client
	mints  mints // of the updates for this client, unless those of all updates were read
}

// span finds an account by its key, in whose order updates are.
func (r *retold) span(e *emission) (first, end int) {
	if !r.Account.Known {
		return 0, len(e.updates)
	}
	at, found := sort.Find(len(e.updates), func(i int) int { return r.Account.Value.Compare(&e.updates[i].Account.Pubkey) })
	if !found {
		return at, at
	}
	return at, at + 1
}

func (r *retold) match(u *ledger.Update) bool {
	var room [maxNamesOf]name
	of := r.name()
	return slices.ContainsFunc(namesOf(room[:0], u), func(n name) bool {
		return n.kind == of.kind && *n.key == *of.key && !n.hasLost(&u.Account)
	}) && (r.Takes == nil || r.Takes(u))
}

func (r *retold) hasHeartbeats() bool { return false }
func (r *retold) size() int           { return 0 }

// frameBytes may be too low if the client chose an encoding that takes more than base64; appending then copies the buffer.
func (r *retold) frameBytes(e *emission, part int) int {
	return maxFrameBytes + withData.updateFrameBytes(&e.updates[part].Account)
}

// appendPart charges for the data: it is encoded for this client alone.
func (r *retold) appendPart(dst []byte, e *emission, part int) []byte {
	var note Note
	if note.of(e, part); !note.Decimals.Known {
		note.Decimals = r.mints.of(note.Account)
	}
	r.work.charge(time.Duration(note.Account.Data.Len()) * dataPrice)
	return frame.AppendText(dst, func(b []byte) []byte { return r.Append(b, r.number, &note) })
}

// readDecimals reads, for this client alone, the decimals that it needs and that are not kept with the emissions for all clients.
func (r *retold) readDecimals(h *Hub, emissions []*emission) (asked int) {
	if !r.Tokens {
		return 0
	}
	clear(r.mints)
	for some := range slices.Chunk(emissions, decimalsBatch) {
		lacking := make(mints)
		for _, e := range some {
			for part, end := r.span(e); part < end && e.decimals.Load() == nil; part++ {
				if r.match(&e.updates[part]) {
					lacking.add(&e.updates[part].Account)
				}
			}
		}
		maps.DeleteFunc(lacking, func(mint ledger.Pubkey, _ ledger.Opt[uint8]) bool { return r.mints[mint].Known })
		asked += len(lacking)
		if h.readMints(h.newest(), lacking) != nil {
			break // what cannot be read stays unknown
		}
		maps.Copy(r.mints, lacking)
	}
	return asked
}
