package engine

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing/synctest"
	"time"

	"ledgerd/engine/codec"
	"ledgerd/engine/datadir"
	"ledgerd/engine/importer"
	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/ledgertest"
	"ledgerd/engine/sequencer"
	"ledgerd/engine/source/upstream"
	"ledgerd/shard"
	"ledgerd/snapshot/vfs/vfstest"
	"ledgerd/snapshot/wal"
)

// settings are what a scene can set up, some with words.
var settings = map[string]func(s *scene, words []string){
	"two-accounts-at-most": func(s *scene, _ []string) { s.config.FetchUpTo = 2 },
	"mints-only":           func(s *scene, _ []string) { s.config.MintsOnly = true },
	"nothing-fetched":      func(s *scene, _ []string) { s.config.Fetcher = nil },
	"all-accounts":         func(s *scene, _ []string) { s.info, s.config.Fetcher = live(), nil },
	"finite-source":        func(s *scene, _ []string) { s.info, s.config.Fetcher = finite(), nil },
	"gaps-allowed":         func(s *scene, _ []string) { s.info.GapsAllowed = true },
	"telling-source":       func(s *scene, _ []string) { s.upstream = new(upstream.Stats) },
	"all-data":             func(s *scene, _ []string) { s.data = allData },
	"data-of": func(s *scene, words []string) {
		data, err := ledger.ParseDataPrograms(s.keys(words...)[0].String())
		must(s, err)
		s.data = data
	},
	"programs": func(s *scene, words []string) {
		s.owners = s.keys(words...)
		s.filter = ledger.NewFilter(s.owners, nil)
	},
	"accounts": func(s *scene, words []string) { s.filter = ledger.NewFilter(s.owners, s.keys(words...)) },
	"import": func(s *scene, _ []string) {
		_, err := importInto(s.T, s.disk, someTold(), importPoint(), importer.Config{Filter: s.filter})
		must(s, err)
		s.info.Identity, s.tip, s.blocks["100"] = "", at100, at100
	},
	"snapshots-every": func(s *scene, words []string) { s.config.SnapshotInterval = s.duration(words[0]) },
	"log-synced-every": func(s *scene, words []string) {
		s.config.Sync = wal.Policy(s.duration(words[0]))
	},
	"segments-of":   func(s *scene, words []string) { s.config.SegmentBytes = int64(s.number(words[0])) },
	"free-at-least": func(s *scene, words []string) { s.config.MinFreeBytes = uint64(s.number(words[0])) },
	"lag":           func(s *scene, words []string) { s.config.MaxLag = s.duration(words[0]) },
	"shards":        func(s *scene, words []string) { s.config.Shards = int(s.number(words[0])) },
	"memory":        func(s *scene, words []string) { s.config.MemoryLimit = int64(s.number(words[0])) },
	"blocks-kept": func(s *scene, words []string) {
		s.config.Retention = sequencer.Retention{Slots: s.number(words[0]), Bytes: 1 << 30}
	},
	"lost+found-in": func(s *scene, words []string) { must(s, s.disk.MkdirAll(words[0]+"/lost+found")) },
	"archive": func(s *scene, _ []string) {
		s.config = archiving()
		s.config.Shards = 2
	},
}

// manners are what the other node can do.
var manners = map[string]func(s *scene, accounts []ledger.AccountWrite){
	"is-well": func(s *scene, _ []ledger.AccountWrite) { s.node.fails(nil) },
	"is-down": func(s *scene, _ []ledger.AccountWrite) {
		s.node.fails(&ledger.UpstreamError{Err: errors.New("no route")})
	},
	"is-broken":      func(s *scene, _ []ledger.AccountWrite) { s.node.fails(errors.New("anything")) },
	"is-busy-for-7s": func(s *scene, _ []ledger.AccountWrite) { s.node.fails(busyFor(7 * time.Second)) },
	"is-busy-for-1h": func(s *scene, _ []ledger.AccountWrite) { s.node.fails(busyFor(time.Hour)) },
	"waits":          func(s *scene, _ []ledger.AccountWrite) { s.node.hold(0, make(chan struct{})) },
	"takes-130ms":    func(s *scene, _ []ledger.AccountWrite) { s.node.hold(130*time.Millisecond, nil) },
	"answers-nothing": func(s *scene, _ []ledger.AccountWrite) {
		s.node.spoil = func(*ledger.BaseState) *ledger.BaseState { return nil }
	},
	"answers": func(s *scene, accounts []ledger.AccountWrite) {
		s.node.spoil = func(b *ledger.BaseState) *ledger.BaseState {
			return &ledger.BaseState{Slot: b.Slot, Accounts: accounts}
		}
	},
	"adds-mint-2": func(s *scene, _ []ledger.AccountWrite) {
		s.node.spoil = func(b *ledger.BaseState) *ledger.BaseState {
			b.Mints = append(b.Mints, ledger.MintWrite{Pubkey: key(2), Mint: ledger.Mint{Decimals: 3}})
			return b
		}
	},
}

func busyFor(d time.Duration) error { return &ledger.UpstreamError{Busy: true, RetryAfter: d} }

// verbs are what a scene can do besides what do does itself: with the disk, with what the source tells, and what it can show of files and lists.
var verbs = map[string]func(s *scene, words []string){
	"disk":     (*scene).harm,
	"source":   (*scene).tellOfSource,
	"lists":    func(s *scene, _ []string) { s.lists() },
	"files":    func(s *scene, _ []string) { s.files() },
	"same-log": func(s *scene, _ []string) { s.sameLog() },
	"held":     (*scene).held,
	"harmed": func(s *scene, _ []string) {
		f := s.n.Stats()
		told := strings.Count(s.logged.String(), "a history file cannot be read, or is damaged")
		s.say("%d snapshots were passed over, %d files of history are lost, and the log told of %d", f.Snapshot.Damaged, f.LostHistory, told)
	},
	"final": func(s *scene, words []string) {
		every := time.Duration(0)
		if len(words) > 1 {
			every = s.duration(words[2])
		}
		for range s.number(words[0]) {
			s.final()
			time.Sleep(every)
		}
	},
	"until-full": func(s *scene, _ []string) {
		taken := 0
		for full := false; !full; synctest.Wait() {
			next := chainOf(s.tip, 1)[0]
			select {
			case s.n.source.feed <- next:
				s.tip, taken = next, taken+1
			default:
				full = true
			}
		}
		s.say("ingest takes %d blocks, and no more", taken)
	},
	"until-paused": func(s *scene, _ []string) {
		for range 100 {
			if s.n.Status().Unhealthy == "" {
				s.grow()
			}
		}
	},
	"serve": func(s *scene, _ []string) {
		if s.n != nil {
			s.n.close()
		}
		s.n, s.ended = serving(s.T, s.disk, 1), false
	},
	"again": func(s *scene, words []string) { s.emit(s.blocks[words[0]]) },
	"power-cut": func(s *scene, _ []string) {
		left := s.disk.Crash(1, 1)
		s.n.mustStop()
		s.disk, s.faulty = left, nil
		s.start()
	},
	"state": func(s *scene, _ []string) {
		s.say("state hash %s, the first block is of slot %d", s.n.Head().StateHash, s.n.Head().Root)
	},
	"verify": func(s *scene, _ []string) { mustVerify(s.T, s.disk) },
	"exports": func(s *scene, _ []string) {
		digest, events := sha256.New(), 0
		must(s, exportTo(s.T, s.Context(), s.disk.Clone(), func(e ledger.Event) error {
			events++
			_, err := digest.Write(codec.AppendEvent(nil, e))
			return err
		}))
		s.say("the export has %d events, of the digest %.8x", events, digest.Sum(nil))
	},
	"follows-export": func(s *scene, _ []string) {
		s.n.close()
		held := s.disk
		s.disk, s.faulty, s.info = vfstest.NewMemory(), nil, finite()
		s.info.GapsAllowed = true
		s.start()
		must(s, exportTo(s.T, s.Context(), held, func(e ledger.Event) error { s.n.send(e); return nil }))
		s.n.endInput()
	},
	"tells": func(s *scene, words []string) {
		s.emit(&ledger.BaseState{Slot: s.number(words[0]), Accounts: s.accounts(words[1:])})
	},
	"shard-breaks": func(s *scene, words []string) { // that of an account, by base state below what is held
		of := s.keys(words...)[0]
		s.n.shards[shard.Of(of.Prefix(), len(s.n.shards))].ApplyBase(shard.Point{Version: 9}, &ledger.BaseState{}, true)
	},
	"shards-hold": func(s *scene, words []string) { // and no record tells it
		wrong := &ledger.BaseState{Slot: 1 << 40, Accounts: s.accounts(words)}
		for _, sh := range s.n.shards {
			_, err := sh.ApplyBase(shard.Point{Version: s.n.seq.Chain().Tip.Version}, wrong, false).Wait()
			must(s, err)
		}
	},
	"resume": func(s *scene, _ []string) {
		from := s.n.resumePoint()
		s.say("the source goes on from slot %d, block %s", from.Slot, from.Blockhash)
	},
	"transaction": func(s *scene, words []string) {
		_, _, err := s.n.Transaction(ledger.Query{}, signature(int(s.number(words[0]))))
		s.say("the transaction of slot %s: %v", words[0], err)
	},
	"pauses": func(s *scene, _ []string) {
		s.say("ingest waited for the disk %d times; it failed: %v", s.n.Stats().DiskPauses, s.n.DiskFailure())
	},
	"cancel": func(s *scene, _ []string) { s.n.cancel() },
	"holds": func(s *scene, _ []string) {
		head, err := heldBy(s.T, s.disk.Crash(0, 1))
		must(s, err)
		tip := head.Tip(ledger.Processed)
		s.say("after a power cut the disk holds slot %d, version %d", tip.Slot, tip.Version)
	},
	"snapshots": func(s *scene, _ []string) {
		f := s.n.Stats().Snapshot
		s.say("%d snapshots were taken, %d failed, one is being taken: %v", f.Count, f.Failures, f.Running)
		s.say("the newest is of slot %d, %d are on the disk", f.Slot, len(filesOf(s.disk, ".state")))
	},
	"history": func(s *scene, _ []string) {
		f := s.n.Stats()
		s.say("memory holds blocks from slot %d on, no block is missing from slot %d on, files: %v", s.n.Head().Floor, f.HistoryFrom, f.HistoryBytes > 0)
	},
	"recent": func(s *scene, _ []string) {
		p, _, err := s.n.Transactions(ledger.Query{}, ledger.TransactionRange{Limit: 5})
		s.say("%d transactions from slot %d on, %v", len(p.Transactions), p.HistoryFrom, err)
	},
}

// kinds are the calls of a disk.
var kinds = map[string]vfstest.Kind{
	"sync": vfstest.KindSync, "create": vfstest.KindCreate, "remove": vfstest.KindRemove, "read": vfstest.KindReadAt, "open": vfstest.KindOpen, "sync-dir": vfstest.KindSyncDir,
}

// named returns what a word names, which must be one of all.
func named[V any](s *scene, all map[string]V, word string) V {
	s.Helper()
	v, known := all[word]
	ledgertest.MustHold(s, known, "%q is none of %v", word, all)
	return v
}

// harm does something to the disk.
func (s *scene) harm(words []string) {
	name := ""
	if len(words) > 2 {
		name = words[2]
	}
	switch words[0] {
	case "full":
		s.disk.SetCapacity(s.disk.UsedBytes())
	case "has-room":
		s.disk.SetCapacity(0)
	case "leaves":
		left := s.disk.UsedBytes() + int64(s.number(words[1]))
		if name == "without-history" {
			left -= s.n.Stats().HistoryBytes
		}
		s.disk.SetCapacity(left)
	case "stalls":
		s.release = stall(s.faulty, vfstest.Plan{}, named(s, kinds, words[1]), name)
	case "stalls-and-fails":
		kind := named(s, kinds, words[1])
		s.release = stall(s.faulty, vfstest.Plan{Call: 1, Kinds: kind, Name: name, Err: syscall.EIO, LoseOnSyncFailure: true}, kind, name)
	case "goes-on":
		s.release()
	case "refuses":
		s.faulty.Arm(vfstest.Plan{Call: 1, Lasting: true, Kinds: named(s, kinds, words[1]), Name: name, Err: syscall.EIO})
	case "lacks-descriptors":
		opening := vfstest.KindCreate | vfstest.KindOpen | vfstest.KindOpenWrite | vfstest.KindList | vfstest.KindSyncDir
		if len(words) > 1 {
			opening = named(s, kinds, words[1])
		}
		s.faulty.Arm(vfstest.Plan{Call: 1, Lasting: true, Kinds: opening, Err: syscall.EMFILE})
	case "damages":
		damage(s.T, s.disk, s.file(words[1:]))
	case "cuts":
		must(s, s.disk.WriteFile(s.file(words[1:]), nil))
	case "has":
		must(s, s.disk.WriteFile(words[1], nil))
	case "loses":
		file := s.file(words[1:])
		must(s, errors.Join(s.disk.Remove(file), s.disk.SyncDir(filepath.Dir(file))))
	case "forges":
		forgeStateHash(s.T, s.disk, s.file(words[1:]))
	case "forges-account":
		forgeAccount(s.T, s.disk, s.file(words[2:]), s.keys(words[1])[0])
	case "is-kept":
		s.kept, s.keptTip = s.disk.Clone(), s.tip
	case "is-again":
		s.disk, s.faulty, s.tip = s.kept.Clone(), nil, s.keptTip
	case "heals":
		s.faulty.Heal()
	default:
		s.Fatalf("%q is nothing that a disk does", words)
	}
}

// file returns the first file with a suffix, that of a number, or the newest.
func (s *scene) file(words []string) string {
	all := filesOf(s.disk, words[0])
	switch {
	case len(words) == 1:
		return all[0]
	case words[1] == "newest":
		return all[len(all)-1]
	}
	return all[s.number(words[1])]
}

// files says which snapshots and files of history are on the disk, by their slots.
func (s *scene) files() {
	text := ""
	for _, name := range append(filesOf(s.disk, ".state"), filesOf(s.disk, ".blocks")...) {
		kind, slots, _ := strings.Cut(strings.TrimSuffix(filepath.Base(name), filepath.Ext(name)), "-")
		var first, last ledger.Slot // of a snapshot a slot and a version
		_, err := fmt.Sscanf(slots, "%d-%d", &first, &last)
		must(s, err)
		text += fmt.Sprintf(" %s %d-%d", kind, first, last)
	}
	s.say("files:%s", text)
}

// sameLog fails unless the files of the log, but for the newest, are those that were kept.
func (s *scene) sameLog() {
	now, kept := filesIn(s.disk, datadir.LogDir("data")), filesIn(s.kept, datadir.LogDir("data"))
	sealed := slices.Sorted(maps.Keys(kept))
	for _, name := range sealed[:len(sealed)-1] {
		ledgertest.Holds(s, now[name] == kept[name], "%s is not as it was", name)
	}
}

// held says which blocks from a slot to another are answered, and which transactions of "final" are.
func (s *scene) held(words []string) {
	first, last, outcome := s.number(words[0]), s.number(words[1]), ""
	for slot := first; slot <= last; slot++ {
		_, _, err := s.n.Block(ledger.Query{}, slot)
		_, _, missing := s.n.Transaction(ledger.Query{}, signature(int(slot)))
		now := fmt.Sprintf("%v, its transaction is held: %v", err, missing == nil)
		if now != outcome && slot > first {
			s.say("slots %d to %d: %s", first, slot-1, outcome)
			first = slot
		}
		outcome = now
	}
	s.say("slots %d to %d: %s", first, last, outcome)
}

var troubles = map[string]upstream.Kind{"dial": upstream.Dial, "closed": upstream.Closed, "out-of-range": upstream.OutOfRange}

// tellOfSource has the source tell of its connection, and of a gap.
func (s *scene) tellOfSource(words []string) {
	switch words[0] {
	case "connects":
		s.upstream.Connected()
	case "disconnects":
		s.upstream.Disconnected(named(s, troubles, words[1]))
	case "finds-gap":
		s.upstream.GapFound(s.number(words[1]), s.number(words[2]))
	case "is-stuck":
		s.upstream.GapStuck(named(s, troubles, words[1]))
	case "fills-gap":
		s.upstream.GapRepaired()
	default:
		s.Fatalf("%q is nothing that a source tells", words)
	}
}

// grow shows a block on the tip, in which account 1 has as many lamports as the slot has a number, with a transaction of that number.
func (s *scene) grow() {
	slot := s.tip.Slot + 1
	s.block(fmt.Sprint(slot), []string{fmt.Sprintf("1=%d", slot)}, false)
	s.tip = with(s.blocks[fmt.Sprint(slot)], signature(int(slot)))
	s.emit(s.tip)
}

// final shows a block, and that the one before is final.
func (s *scene) final() {
	was := s.tip
	s.grow()
	s.emit(status(was, ledger.StatusFinalized))
}

// lists writes which lists may lack accounts, and what is said of accounts that are not held: 77, and 4, which may be known to be closed.
func (s *scene) lists() {
	nothing := ledger.Opt[ledger.Pubkey]{}
	for _, k := range []int{9, 8, 77} {
		_, _, v, err := s.n.Program(ledger.Query{}, key(k), nothing, 10, nil)
		s.say("program %d: %v; may lack accounts: %v", k, err, v.Lacks)
	}
	for _, k := range []int{1, 77} {
		_, _, v, err := s.n.Tokens(ledger.Query{}, key(k), nothing, 10, nil)
		s.say("wallet %d: %v; may lack accounts: %v", k, err, v.Lacks)
	}
	for _, k := range []int{77, 4} {
		_, _, err := s.n.Account(ledger.Query{}, key(k))
		_, v, _ := s.n.Accounts(ledger.Query{}, []ledger.Pubkey{key(1), key(k)})
		s.say("account %d: %v; a list with it may lack accounts: %v", k, err, v.Lacks)
	}
}
