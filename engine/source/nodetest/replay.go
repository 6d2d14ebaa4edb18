package nodetest

import (
	"maps"
	"slices"

	"ledgerd/engine/ledger"
)

// kept is what Yellowstone's plugin keeps of a slot for who asks for it again (ProcessingSlot and FrozenBlock of
// block_reconstruction.rs).
type kept struct {
	content      []*message // writes and transactions
	versions     map[ledger.Pubkey]uint64
	transactions int
	meta         *message
	statuses     []*message // processed, confirmed, finalized
}

// frozen returns what the plugin replays, from a slot on, of the messages that it has told (grpc.rs, where it answers
// from_slot): of each block that is frozen and whole its transactions and the newest write of each account, then its meta, and then
// its statuses. Nothing tells that such a slot began. Of a slot whose bank is made anew, or dead, the old bank is forgotten.
func frozen(told []*message, from ledger.Slot) (replay []*message) {
	slots := map[ledger.Slot]*kept{}
	for _, m := range told {
		slot := m.block.Slot
		switch isStatus := m.kind == slotMessage; {
		case slot < from:
		case isStatus && (m.status == slotCreatedBank || m.status == slotDead):
			delete(slots, slot)
		case isStatus && m.status > slotFinalized:
		default:
			if slots[slot] == nil {
				slots[slot] = &kept{versions: map[ledger.Pubkey]uint64{}}
			}
			slots[slot].add(m)
		}
	}
	for _, slot := range slices.Sorted(maps.Keys(slots)) {
		if k := slots[slot]; k.meta != nil && k.transactions >= len(k.meta.block.Transactions) && len(k.statuses) > 0 {
			replay = append(append(append(replay, k.newest()...), k.meta), k.statuses...)
		}
	}
	return replay
}

func (k *kept) add(m *message) {
	switch m.kind {
	case slotMessage:
		k.statuses = append(k.statuses, m)
	case metaMessage:
		k.meta = m
	case transactionMessage:
		k.transactions++
		k.content = append(k.content, m)
	case accountMessage:
		k.versions[m.write.Pubkey] = max(k.versions[m.write.Pubkey], m.writeVersion)
		k.content = append(k.content, m)
	}
}

// newest returns the content without the writes that a newer one replaces.
func (k *kept) newest() []*message {
	return slices.DeleteFunc(k.content, func(m *message) bool {
		return m.kind == accountMessage && m.writeVersion < k.versions[m.write.Pubkey]
	})
}
