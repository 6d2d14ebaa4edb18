package stream

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"ledgerd/engine/ledger"
)

const (
	// maxSnapshot is how many accounts one snapshot may hold.
	maxSnapshot = 10_000
	// snapshotBytes is about what an account of a snapshot takes while it is read and encoded.
	snapshotBytes = 640
	// snapshotTries is how often a snapshot is begun anew because its version was folded away.
	snapshotTries = 3
)

var (
	errTooMany  = errors.New("more than 10000 accounts")
	errTooLarge = errors.New("more data than may wait for a socket: read the accounts from GET /api/accounts and GET /api/accounts/program/{program_id} instead")
)

// subscribeWithSnapshot subscribes and delivers the named accounts as of the slot the
// subscription starts at, then exactly what was published after it.
//
// What is published while the accounts are read is delivered afterwards, as the subscriber then wants. So
// whatever the reading ends with, nothing is lost, doubled, or changed by an error. Reading and encoding go
// without the lock: only the reader's goroutine changes what the subscriber wants.
func (s *subscriber) subscribeWithSnapshot(named names, change func(), to wants, id messageID) error {
	if !s.pay(snapshotCost(&named)) {
		return nil
	}
	done, err := s.hub.await(s.outbox.ctx, s.seat.turns.snapshot, s.hub.turns.snapshot)
	if err != nil {
		return nil // the connection ends
	}
	defer done()
	size := snapshotBytes * (len(named[pubkeys]) + len(named[wallets]))
	if len(named[programs])+len(named[wallets]) > 0 {
		size += snapshotBytes * maxSnapshot
	}
	if !s.hub.memory.Take(size) {
		return &endMemory
	}
	defer s.hub.memory.Hold(-size)
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	s.holdLocked(true)
	defer s.holdLocked(false)
	err = ledger.ErrUnavailable
	for try := 0; try < snapshotTries && errors.Is(err, ledger.ErrUnavailable); try++ {
		at := s.hub.positionLocked(s.level)
		var packets []*packet
		if packets, err = s.snapshotUnlocked(at, to, named, id); err == nil {
			change()
			s.awaits = nil // a snapshot starts over: what follows it is delivered whole
			s.put(append([]*packet{s.subscribed(id, at)}, packets...)...)
		}
		s.putSince(at.total, max(at.seq, s.seen()))
	}
	var end *closing
	switch {
	case err == nil, errors.As(err, &end), errors.Is(err, errTooMany), errors.Is(err, errTooLarge):
		return err
	case errors.Is(err, ledger.ErrUnavailable):
		return &endMemory
	}
	s.hub.config.Logger.Error("cannot read a snapshot for a subscriber", "error", err)
	return &endInternal
}

// holdLocked begins or ends the holding of emissions.
func (s *subscriber) holdLocked(on bool) {
	if s.held = nil; on {
		at := s.hub.positionLocked(s.level)
		s.held = &at
	}
	s.audience().classify(s)
}

// snapshotUnlocked reads and encodes a snapshot without the hub's lock, which is held again
// afterwards even if a fault of ours ends it.
func (s *subscriber) snapshotUnlocked(at standing, to wants, named names, id messageID) ([]*packet, error) {
	s.hub.mu.Unlock()
	defer s.hub.mu.Lock()
	accounts, err := s.readSnapshot(at.head, named, to.where)
	if err != nil {
		return nil, err
	}
	data := 0 // bytes of text, beside what is usual
	for i := range accounts {
		data += to.form.updateFrameBytes(&accounts[i]) - maxFrameBytes
	}
	switch usual := len(accounts) * maxFrameBytes; {
	case !s.outbox.hasRoomFor(data + usual):
		return nil, errTooLarge
	case !s.mayWait(data + usual), !s.hub.memory.Take(data):
		return nil, &endMemory
	}
	defer s.hub.memory.Hold(-data)
	var time ledger.Opt[int64]
	if at.head != nil {
		time = at.head.Tip(s.level).Time
	}
	mints := make(mints)
	if to.form.shows(withTokens) {
		for i := range accounts {
			mints.add(&accounts[i])
		}
		s.seat.work.charge(foundCost(len(mints)))
		_ = s.hub.readMints(at.head, mints) // without an answer they are null
	}
	var packets []*packet
	room := batch{data: make([]byte, 0, batchBytes)}
	endPacket := func() {
		if room.frames > 0 {
			packets = append(packets, &packet{data: bytes.Clone(room.data), tally: room.tally, state: true})
		}
		room = batch{data: room.data[:0]}
	}
	for i := range accounts {
		a := &accounts[i]
		if !room.hasRoom(to.form.updateFrameBytes(a)) {
			endPacket()
		}
		room.data = appendUpdate(room.data, to.form, a, mints.of(a), time, at.slot, at.seq, s.level)
		room.frames++
	}
	endPacket()
	end := message(`{"type":"snapshot_end","id":%s,"slot":%d,"seq":%d}`, id, at.slot, at.seq)
	end.seq, end.state = at.seq, len(packets) > 0
	return append(packets, end), nil
}

// mayWait reports whether a snapshot of so many bytes may wait for the client: all snapshots that wait for it may together take an
// eighth of the memory, and one alone may take more.
func (s *subscriber) mayWait(snapshot int) bool {
	others := s.seat.snapshots.Load()
	return others == 0 || others+int64(snapshot) <= s.hub.config.Memory.Limit()/clientShare
}

// readSnapshot returns the live accounts among those named, among the programs' members and
// among the wallets' token accounts, in pubkey order, each once. What it reads is charged, also if it is then refused.
func (s *subscriber) readSnapshot(head *ledger.Head, named names, where *ledger.DataFilter) ([]ledger.Account, error) {
	if head == nil || named.count() == 0 {
		return nil, nil
	}
	q, from := ledger.Query{Commitment: s.level, Head: head}, ledger.Opt[ledger.Pubkey]{}
	keys := slices.Concat(named[pubkeys], named[wallets])
	slices.SortFunc(keys, func(a, b ledger.Pubkey) int { return a.Compare(&b) })
	accounts, _, err := s.hub.config.Ledger.Accounts(q, slices.Compact(keys))
	if err != nil {
		return nil, err
	}
	add := func(found []ledger.Account, next ledger.Opt[ledger.Pubkey], err error, list string) error {
		s.seat.work.charge(foundCost(len(found)))
		accounts = append(accounts, found...)
		switch {
		case err != nil && !errors.Is(err, ledger.ErrNotFound):
			return err
		case next.Known || len(accounts) > maxSnapshot:
			return fmt.Errorf("%w: read them from GET /api/%s instead", errTooMany, list)
		}
		return nil
	}
	for _, program := range named[programs] {
		of := q
		of.Where = where
		for after, ends := from, false; !ends; {
			members, next, _, err := s.hub.config.Ledger.Program(of, program, after, maxSnapshot, nil)
			if ends = where == nil || !next.Known; !ends { // a page looks through many accounts, and ends with whatever it found
				if !s.pay(filteredPrice) {
					return nil, &endRate
				}
				after, next = next, from
			}
			if err := add(members, next, err, "accounts/program/{program_id}"); err != nil {
				return nil, err
			}
		}
	}
	for _, wallet := range named[wallets] {
		tokens, next, _, err := s.hub.config.Ledger.Tokens(q, wallet, from, maxSnapshot, nil)
		if err := add(tokens, next, err, "account/{pubkey}/tokens"); err != nil {
			return nil, err
		}
	}
	accounts = slices.DeleteFunc(accounts, func(a ledger.Account) bool { return !a.Exists() })
	slices.SortFunc(accounts, func(a, b ledger.Account) int { return a.Pubkey.Compare(&b.Pubkey) })
	return slices.CompactFunc(accounts, func(a, b ledger.Account) bool { return a.Pubkey == b.Pubkey }), nil
}
