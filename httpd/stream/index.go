package stream

import "ledgerd/engine/ledger"

// index leads from a key to those who named it.
type index map[ledger.Pubkey]listeners

// listeners are those who named a key. Almost every key has one, which needs no map.
type listeners struct {
	first  *subscriber
	others map[*subscriber]struct{}
}

// add enters a subscriber under a key, if it is not there yet.
func (x index) add(k ledger.Pubkey, s *subscriber) {
	l := x[k]
	switch {
	case l.first == s:
		return
	case l.first == nil:
		l.first = s
	case l.others == nil:
		l.others = map[*subscriber]struct{}{s: {}}
	default:
		l.others[s] = struct{}{}
		return
	}
	x[k] = l
}

// remove takes a subscriber out from under a key, if it is there.
func (x index) remove(k ledger.Pubkey, s *subscriber) {
	l, known := x[k]
	if !known {
		return
	}
	if l.first == s {
		l.first = nil
		for other := range l.others {
			l.first = other
			break
		}
		s = l.first
	}
	delete(l.others, s)
	switch {
	case l.first == nil:
		delete(x, k)
	case len(l.others) == 0:
		x[k] = listeners{first: l.first}
	default:
		x[k] = l
	}
}

// hearMatch tells an update to those who named a key.
func (x index) hearMatch(k ledger.Pubkey, e *emission, i int) {
	l := x[k]
	if l.first == nil {
		return
	}
	l.first.hearMatch(e, i)
	for s := range l.others {
		s.hearMatch(e, i)
	}
}
