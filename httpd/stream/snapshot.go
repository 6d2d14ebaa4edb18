package stream

import (
	"errors"
	"slices"

	"ledgerd/engine/ledger"
)

// maxSnapshot is how many accounts one snapshot may hold.
const maxSnapshot = 10_000

var errTooMany = errors.New("more than 10000 accounts: read them from GET /api/accounts/program/{program_id} instead")

// snapshotTries is how often a snapshot is begun anew because its version was folded away.
const snapshotTries = 3

// subscribeWithSnapshot subscribes and tells the named accounts as of the slot the
// subscription starts at, then exactly what was published after it.
//
// Emissions that come while the accounts are read are held; afterwards they are heard
// as the subscriber then wants. So whatever the reading ends with, nothing is lost,
// doubled, or changed by an error.
func (s *subscriber) subscribeWithSnapshot(pubkeys, programs []ledger.Pubkey, extended bool, id messageID) error {
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	if !s.mayWidenLocked(pubkeys, programs) {
		return nil
	}
	s.holdLocked(true)
	defer s.hearHeld()
	defer s.holdLocked(false)
	err := ledger.ErrUnavailable
	for try := 0; try < snapshotTries && errors.Is(err, ledger.ErrUnavailable); try++ {
		s.hearHeld() // up to the head that is read now, the subscriber wants what it wanted
		head := s.hub.head
		_, seq := s.hub.positionLocked(s.level)
		var accounts []ledger.Account
		if accounts, err = s.readUnlocked(head, pubkeys, programs); err == nil {
			s.audience().widen(s, pubkeys, programs, extended)
			s.resumed = 0 // a snapshot starts over: what follows it is told whole
			s.tellSnapshot(head, seq, accounts, id)
		}
	}
	switch {
	case errors.Is(err, errTooMany):
		return err
	case errors.Is(err, ledger.ErrUnavailable):
		s.outbox.close(endMemory)
	case err != nil:
		s.hub.config.Logger.Error("cannot read a snapshot for a subscriber", "error", err)
		s.outbox.close(endInternal)
	}
	return nil
}

// holdLocked begins or ends the holding of emissions.
func (s *subscriber) holdLocked(on bool) {
	s.holding = on
	s.audience().walk(s)
}

// tellSnapshot says what was subscribed and how it stands at the head.
func (s *subscriber) tellSnapshot(head *ledger.Head, seq ledger.Seq, accounts []ledger.Account, id messageID) {
	var tip ledger.Tip
	if head != nil {
		tip = *head.Tip(s.level)
	}
	s.say(func(b []byte) []byte {
		b = appendCounts(appendReply(b, "subscribed", id), &s.wants)
		return append(appendPosition(append(b, ','), tip.Slot, seq), '}')
	})
	e := &emission{level: s.level, slot: tip.Slot, time: tip.Time, lastSeq: seq}
	for i := range accounts {
		e.updates = append(e.updates, ledger.Update{Account: accounts[i]})
		e.seqs = append(e.seqs, seq)
	}
	var p packer
	for i := range e.updates {
		p.open.data = e.appendUpdate(p.room(), s.wants.form(), i)
		p.count(0)
	}
	p.add(appendFrame(nil, func(b []byte) []byte {
		return append(appendPosition(append(appendReply(b, "snapshot_end", id), ','), tip.Slot, seq), '}')
	}), seq)
	s.outbox.put(p.finish()...)
}

// readUnlocked is readSnapshot without the hub's lock, which is held again afterwards even
// if a fault of ours ends the reading.
func (s *subscriber) readUnlocked(head *ledger.Head, pubkeys, programs []ledger.Pubkey) ([]ledger.Account, error) {
	s.hub.mu.Unlock()
	defer s.hub.mu.Lock()
	return s.readSnapshot(head, pubkeys, programs)
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
