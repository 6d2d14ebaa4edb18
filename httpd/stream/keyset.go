package stream

import (
	"iter"
	"maps"
	"slices"

	"ledgerd/engine/ledger"
)

// keySet is a set of pubkeys or programs. The zero value is empty.
type keySet struct {
	few  []ledger.Pubkey // in no order, while there are few of them: half the size of a map
	many map[ledger.Pubkey]struct{}
}

// fewKeys is how many are looked through one by one.
const fewKeys = 16

func (s *keySet) len() int { return len(s.few) + len(s.many) }

func (s *keySet) has(k ledger.Pubkey) bool {
	if s.many == nil {
		return slices.Contains(s.few, k)
	}
	_, ok := s.many[k]
	return ok
}

func (s *keySet) add(k ledger.Pubkey) {
	switch {
	case s.many != nil:
		s.many[k] = struct{}{}
	case slices.Contains(s.few, k):
	case len(s.few) < fewKeys:
		s.few = append(s.few, k)
	default:
		s.many = make(map[ledger.Pubkey]struct{}, 2*fewKeys)
		for _, k := range s.few {
			s.many[k] = struct{}{}
		}
		s.few, s.many[k] = nil, struct{}{}
	}
}

func (s *keySet) remove(k ledger.Pubkey) {
	delete(s.many, k)
	if i := slices.Index(s.few, k); i >= 0 {
		last := len(s.few) - 1
		s.few[i], s.few = s.few[last], s.few[:last]
	}
}

// clear makes the set empty.
func (s *keySet) clear() { *s = keySet{} }

// all visits every key.
func (s *keySet) all() iter.Seq[ledger.Pubkey] {
	if s.many == nil {
		return slices.Values(s.few)
	}
	return maps.Keys(s.many)
}

func (s *keySet) clone() keySet { return keySet{slices.Clone(s.few), maps.Clone(s.many)} }
