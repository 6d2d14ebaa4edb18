package stream

import (
	"errors"
	"slices"

	"ledgerd/engine/ledger"
)

const (
	// maxSnapshot is how many accounts one snapshot may hold.
	maxSnapshot = 10_000
	// accountsPerToken is how many of them cost a client as much as a message.
	accountsPerToken = 250
)

// errNoRoom says that too many snapshots wait for slow sockets.
var errNoRoom = errors.New("too much waits for slow readers")

var errTooMany = errors.New("more than 10000 accounts: read them from GET /api/accounts/program/{program_id} instead")

// snapshotTries is how often a snapshot is begun anew because its version was folded away.
const snapshotTries = 3

// subscribeWithSnapshot subscribes and tells the named accounts as of the slot the
// subscription starts at, then exactly what was published after it.
//
// Emissions that come while the accounts are read are held; afterwards they are heard
// as the subscriber then wants. So whatever the reading ends with, nothing is lost,
// doubled, or changed by an error. Reading and encoding go without the lock: nobody but
// the reader's goroutine changes what the subscriber wants.
func (s *subscriber) subscribeWithSnapshot(pubkeys, programs []ledger.Pubkey, extended bool, id messageID) error {
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	if !s.mayWidenLocked(pubkeys, programs) {
		return nil
	}
	s.holdLocked(true)
	defer s.holdLocked(false)
	shape := wants{extended: extended || s.wants.extended}.form()
	err := ledger.ErrUnavailable
	for try := 0; try < snapshotTries && errors.Is(err, ledger.ErrUnavailable); try++ {
		s.hearHeldLocked() // up to the head that is read now, the subscriber wants what it wanted
		at := position{head: s.hub.head}
		at.slot, at.seq = s.hub.positionLocked(s.level)
		var pieces []piece
		if pieces, err = s.snapshotUnlocked(at, shape, pubkeys, programs, id); err == nil {
			s.audience().widen(s, pubkeys, programs, extended)
			s.resumed = 0 // a snapshot starts over: what follows it is told whole
			s.saySubscribed(id, at.slot, at.seq)
			s.put(pieces...)
		}
	}
	switch {
	case errors.Is(err, errTooMany):
		return err
	case errors.Is(err, ledger.ErrUnavailable), errors.Is(err, errNoRoom):
		s.outbox.close(endMemory)
	case err != nil:
		s.hub.config.Logger.Error("cannot read a snapshot for a subscriber", "error", err)
		s.outbox.close(endInternal)
	}
	return nil
}

// position is where a snapshot stands.
type position struct {
	head *ledger.Head // nil before anything was published
	slot ledger.Slot
	seq  ledger.Seq
}

// holdLocked begins or ends the holding of emissions; at its end they are heard.
func (s *subscriber) holdLocked(on bool) {
	if !on {
		s.hearHeldLocked()
	}
	s.holding = on
	s.audience().place(s)
}

// hearHeldLocked hears what was held back, as the subscriber now wants. Between emissions
// it lets publishing have the lock.
func (s *subscriber) hearHeldLocked() {
	for len(s.held) > 0 {
		e := s.held[0]
		s.held[0] = nil
		s.held = s.held[1:]
		s.heldUpdates -= len(e.updates) + 1
		s.hearAlone(e)
		s.passed(e)
		s.hub.mu.Unlock()
		s.hub.mu.Lock()
	}
	s.held, s.heldUpdates = nil, 0
}

// snapshotUnlocked reads and encodes a snapshot without the hub's lock, which is held again
// afterwards even if a fault of ours ends it.
func (s *subscriber) snapshotUnlocked(at position, shape form, pubkeys, programs []ledger.Pubkey, id messageID) ([]piece, error) {
	s.hub.mu.Unlock()
	defer s.hub.mu.Lock()
	accounts, err := s.readSnapshot(at.head, pubkeys, programs)
	if err != nil {
		return nil, err
	}
	s.budget.charge(len(accounts) / accountsPerToken)
	pieces := s.encodeSnapshot(at, shape, accounts, id)
	if !s.outbox.hasRoom(pieces) {
		return nil, errNoRoom
	}
	return pieces, nil
}

// encodeSnapshot returns the frames of a snapshot. They are for one connection alone.
func (s *subscriber) encodeSnapshot(at position, shape form, accounts []ledger.Account, id messageID) []piece {
	e := &emission{level: s.level, slot: at.slot}
	if at.head != nil {
		e.time = at.head.Tip(s.level).Time
	}
	for i := range accounts {
		e.updates = append(e.updates, ledger.Update{Account: accounts[i]})
		e.seqs = append(e.seqs, at.seq)
	}
	var p packer
	for i := range e.updates {
		p.open.data = e.appendUpdate(p.room(), shape, i)
		p.count(0)
	}
	p.add(appendFrame(nil, func(b []byte) []byte {
		return append(appendPosition(append(appendReply(b, "snapshot_end", id), ','), at.slot, at.seq), '}')
	}), at.seq)
	pieces := p.finish()
	for i := range pieces {
		pieces[i].unshared = true
	}
	return pieces
}

// readSnapshot returns the live accounts among those named and among the programs'
// members, in pubkey order, each once.
func (s *subscriber) readSnapshot(head *ledger.Head, pubkeys, programs []ledger.Pubkey) ([]ledger.Account, error) {
	if head == nil || len(pubkeys)+len(programs) == 0 {
		return nil, nil
	}
	q := ledger.Query{Commitment: s.level, Head: head}
	accounts, _, err := s.hub.config.Ledger.Accounts(q, pubkeys)
	if err != nil {
		return nil, err
	}
	for _, program := range programs {
		members, more, _, err := s.hub.config.Ledger.Program(q, program, ledger.Opt[ledger.Pubkey]{}, maxSnapshot)
		if err != nil && !errors.Is(err, ledger.ErrNotFound) {
			return nil, err
		}
		accounts = append(accounts, members...)
		if more || len(accounts) > maxSnapshot {
			return nil, errTooMany
		}
	}
	accounts = slices.DeleteFunc(accounts, func(a ledger.Account) bool { return !a.Exists() })
	slices.SortFunc(accounts, func(a, b ledger.Account) int { return a.Pubkey.Compare(&b.Pubkey) })
	return slices.CompactFunc(accounts, func(a, b ledger.Account) bool { return a.Pubkey == b.Pubkey }), nil
}
