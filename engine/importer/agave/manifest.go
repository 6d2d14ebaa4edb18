package agave

import (
	"bufio"
	"errors"
	"fmt"
	"io"

	"ledgerd/engine/importer"
	"ledgerd/engine/ledger"
)

const (
	// maxStorages bounds what the list of storages takes: Agave itself unpacks no more files.
	maxStorages = 5_000_000
	// maxManifestBytes is several times what the main network's takes.
	maxManifestBytes = 8 << 30
)

// storage is an account file, accounts/SLOT.NUMBER, of which so many bytes are in use.
type storage struct{ number, used uint64 }

// manifest is what is taken from snapshots/SLOT/SLOT.
type manifest struct {
	bank     importer.Point
	storages map[ledger.Slot]storage // those that came are removed
}

// readManifest reads a manifest of so many bytes: every field up to the list of storages and what
// follows it, checked against each other.
func readManifest(r io.Reader, size int64, named ledger.Slot, base ledger.Opt[ledger.Slot]) (*manifest, error) {
	if size > maxManifestBytes {
		return nil, fmt.Errorf("it takes %d bytes, more than any bank", size)
	}
	b := &bincode{r: bufio.NewReaderSize(r, 64<<10), size: uint64(size)}
	m := &manifest{storages: make(map[ledger.Slot]storage)}
	readBank(b, &m.bank)
	if b.err == nil {
		b.fail(checkBank(&m.bank, named))
	}
	m.readAccountsDB(b)
	readExtra(b, base)
	if b.err != nil {
		return nil, b.err
	}
	return m, nil
}

// checkBank holds fields that are far apart against each other: they agree only where what lies
// between them was followed byte by byte.
func checkBank(k *importer.Point, named ledger.Slot) error {
	switch {
	case k.Slot != named:
		return fmt.Errorf("it says it is the bank at slot %d, not %d", k.Slot, named)
	case k.ParentSlot >= k.Slot && k.Slot != 0:
		return fmt.Errorf("it names slot %d as the parent of slot %d", k.ParentSlot, k.Slot)
	case k.Height.Value > uint64(k.Slot):
		return fmt.Errorf("it says that slot %d has block height %d", k.Slot, k.Height.Value)
	}
	return nil
}

// Sizes of structures that are passed over, in bytes.
const (
	feeCalculatorBytes   = 8              // lamports_per_signature
	feeRateGovernorBytes = 4*8 + 1        // targets, bounds, burn_percent; the rate itself is not written
	epochScheduleBytes   = 8 + 8 + 1 + 16 // slots_per_epoch, offset, warmup, first normal epoch and slot
	rentBytes            = 8 + 8 + 1
	rentCollectorBytes   = 8 + epochScheduleBytes + 8 + rentBytes
	inflationBytes       = 6 * 8
	delegationBytes      = 32 + 4*8 // voter, stake, activation, deactivation, rate
	historyEntryBytes    = 8 + 3*8
	bankHashStatsBytes   = 5 * 8
	minVoteAccountBytes  = 32 + 8 + 8 + 8 + 32 + 1 + 8
	minStakesBytes       = 8 + 8 + 8 + 8 + 8
)

// readBank reads DeserializableVersionedBank.
func readBank(b *bincode, k *importer.Point) {
	k.Blockhash = readBlockhashes(b)
	b.skipItems(8 + 8) // ancestors
	b.skip(32 + 32)    // hash and parent_hash, of banks
	k.ParentSlot = b.slot()
	b.skipItems(8 + 8) // hard_forks
	b.skip(3 * 8)      // transaction_count, tick_height, signature_count
	k.Capitalization = ledger.Some(ledger.Lamports(b.u64()))
	b.skip(8) // max_tick_height
	if b.flag() {
		b.skip(8) // hashes_per_tick
	}
	b.skip(8 + 16 + 8 + 8 + 8) // ticks_per_slot, ns_per_slot, genesis_creation_time, slots_per_year, accounts_data_len
	k.Slot = b.slot()
	b.skip(8) // epoch
	k.Height = ledger.Some(b.u64())
	b.skip(32 + 8) // collector_id, collector_fees
	b.skip(feeCalculatorBytes + feeRateGovernorBytes)
	b.skip(8) // collected_rent
	b.skip(rentCollectorBytes + epochScheduleBytes + inflationBytes)
	skipStakes(b)
	b.skipItems(32) // unused_accounts: two sets and a map
	b.skipItems(32)
	b.skipItems(32 + 8)
	for n := b.count(8 + minStakesBytes + 8); n > 0 && b.err == nil; n-- {
		b.skip(8) // epoch
		skipEpochStakes(b)
	}
	b.flag() // is_delta
}

// readBlockhashes reads BlockhashQueue and returns the hash registered last, that of the block at the bank's slot. It must be
// among those that the queue holds.
func readBlockhashes(b *bincode) ledger.Hash {
	b.skip(8) // last_hash_index
	if !b.flag() {
		b.fail(errors.New("it names no blockhash"))
	}
	last := b.hash()
	held := false
	for n := b.count(32 + feeCalculatorBytes + 8 + 8); n > 0 && b.err == nil; n-- {
		held = b.hash() == last || held
		b.skip(feeCalculatorBytes + 8 + 8) // hash_index, timestamp
	}
	b.skip(8) // max_age
	if !held {
		b.fail(errors.New("its last blockhash is not among its recent ones"))
	}
	return last
}

// skipStakes passes over Stakes<Delegation>.
func skipStakes(b *bincode) {
	for n := b.count(minVoteAccountBytes); n > 0 && b.err == nil; n-- {
		b.skip(32 + 8 + 8) // key, stake; of the account: lamports
		b.skipItems(1)     // data
		b.skip(32)         // owner
		b.flag()           // executable
		b.skip(8)          // rent_epoch
	}
	b.skipItems(32 + delegationBytes)
	b.skip(8 + 8) // unused, epoch
	b.skipItems(historyEntryBytes)
}

// skipEpochStakes passes over EpochStakes.
func skipEpochStakes(b *bincode) {
	skipStakes(b)
	b.skip(8) // total_stake
	for n := b.count(32 + 8 + 8); n > 0 && b.err == nil; n-- {
		b.skip(32)      // node
		b.skipItems(32) // its vote accounts
		b.skip(8)       // total_stake
	}
	b.skipItems(32 + 32) // epoch_authorized_voters
}

// readAccountsDB reads AccountsDbFields.
func (m *manifest) readAccountsDB(b *bincode) {
	for n := b.count(8 + 8); n > 0 && b.err == nil; n-- {
		slot := b.slot()
		if slot > m.bank.Slot {
			b.fail(fmt.Errorf("it lists a storage of slot %d, after its own", slot))
		}
		for k := b.count(8 + 8); k > 0 && b.err == nil; k-- {
			if _, ok := m.storages[slot]; ok {
				b.fail(fmt.Errorf("it lists two storages of slot %d, and nothing says which is the newer", slot))
			}
			if m.storages[slot] = (storage{b.u64(), b.u64()}); len(m.storages) > maxStorages {
				b.fail(fmt.Errorf("it lists more than %d storages", maxStorages))
			}
		}
	}
	b.skip(8) // write_version
	if slot := b.slot(); b.err == nil && slot != m.bank.Slot {
		b.fail(fmt.Errorf("its accounts are at slot %d, its bank at %d", slot, m.bank.Slot))
	}
	b.skip(32 + 32 + bankHashStatsBytes) // accounts_delta_hash, accounts_hash
}

// readExtra reads what follows as far as it matters here. Older writers leave off any of it.
func readExtra(b *bincode, base ledger.Opt[ledger.Slot]) {
	if b.more() {
		b.skipItems(8) // historical roots
	}
	if b.more() {
		b.skipItems(8 + 32) // historical roots with hashes
	}
	if b.more() {
		b.skip(8) // lamports_per_signature
	}
	if !b.more() || !b.flag() {
		return // newer writers leave it to the name of the archive
	}
	switch since := b.slot(); {
	case !base.Known:
		b.fail(errors.New("it is of an incremental snapshot, which holds changes alone"))
	case since != base.Value:
		b.fail(fmt.Errorf("it holds the changes since slot %d, and its name says %d", since, base.Value))
	}
}
