package main

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/mr-tron/base58"

	"ledgerd/engine/ledger/datatest"
	"ledgerd/engine/ledger/ledgertest"
	clientlib "ledgerd/httpd/client"
)

// recordedFiles are the files of blocks in a form of a node. slot is given where the file
// does not say it.
var recordedFiles = []struct {
	name         string
	slot         uint64
	blocks       int
	transactions int
}{
	{"blocks/mainnet-254170887.json.gz", 254170887, 1, 602},
	{"blocks/devnet-270893658.json", 270893658, 1, 57},
	{"blocks/devnet-314167369.json", 314167369, 1, 18},
	{"blocks/excerpt-mainnet-100000000.json", 100000000, 1, 10},
	{"blocks/excerpt-mainnet-100000000-jsonparsed.json", 100000000, 1, 10},
	{"blocks/excerpt-mainnet-154808473.json", 154808473, 1, 1},
	{"blocks/excerpt-mainnet-child-of-1021084.json", 1021085, 1, 15},
	{"rpc/http/Blocks/GetBlockResponse.json", 79662905, 1, 2},
	{"blocks/mainnet-0-9.blocks.json", 0, 10, 34},
	{"blocks/mainnet-0-9.blocks.json,blocks/mainnet-10-19.blocks.json", 0, 20, 75},
}

func TestRecordedBlocksAreAnsweredAsRecorded(t *testing.T) {
	t.Parallel()
	for _, f := range recordedFiles {
		t.Run(strings.ReplaceAll(filepath.Base(f.name), ",", "+"), func(t *testing.T) {
			t.Parallel()
			var paths []string
			for name := range strings.SplitSeq(f.name, ",") {
				paths = append(paths, datatest.Path(t, name))
			}
			l := readBlocks(t, f.slot, paths...)
			ledgertest.Equal(t, [2]int{len(l.blocks), len(l.newestFirst())}, [2]int{f.blocks, f.transactions}, "blocks and transactions of the recording")
			r := start(t, "--data-dir", t.TempDir(), "--source", "file:"+strings.Join(paths, ","))
			r.ending(t) // a node is ready from its first block on
			a := dial(t, r)
			var checks sync.WaitGroup
			for _, check := range []func(*api, *recording){checkBlocks, checkTransactions, checkAccounts, checkTokens} {
				checks.Go(func() { check(a, l) })
			}
			checks.Wait()
		})
	}
}

func checkBlocks(a *api, l *recording) {
	a.Helper()
	first, last := l.blocks[0], l.blocks[len(l.blocks)-1]
	for _, commitment := range []string{"", "?commitment=processed", "?commitment=confirmed", "?commitment=finalized"} {
		want(a, "/blocks/latest"+commitment, "", clientlib.Block{
			Slot: last.Slot, Hash: last.Hash, ParentSlot: last.ParentSlot, Timestamp: last.Timestamp, Transactions: last.Transactions,
		})
	}
	for _, b := range l.blocks {
		plain, signatures, records := b, b, b
		plain.Signatures, plain.Records = nil, nil
		signatures.Records, records.Signatures = nil, nil
		path := fmt.Sprintf("/blocks/%d", b.Slot)
		want(a, path, "", plain)
		want(a, path+"?include=signatures", "", signatures)
		want(a, path+"?include=transactions", "", records)
	}
	a.wantMissing(fmt.Sprintf("/blocks/%d", last.Slot+1), "slot not yet produced")
	if first.Slot > 0 {
		a.wantMissing(fmt.Sprintf("/blocks/%d", first.Slot-1), "slot not indexed")
	}
	ledgertest.Equal(a, a.ok("/blocks/latest").header.Get("X-Ledger-Slot"), fmt.Sprint(last.Slot), "X-Ledger-Slot")
}

func checkTransactions(a *api, l *recording) {
	a.Helper()
	for _, t := range l.newestFirst() {
		want(a, "/transaction/"+t.Signature, "", t)
	}
	want(a, "/transactions/recent?limit=1000", "", clientlib.RecentTransactions{Transactions: l.newestFirst()})
	of := make(map[string][]clientlib.Transaction) // by address
	for _, t := range l.newestFirst() {
		for i, key := range t.Accounts {
			if slices.Index(t.Accounts, key) == i {
				of[key] = append(of[key], t)
			}
		}
	}
	for i, key := range inKeyOrder(maps.Keys(of)) {
		if i%7 == 0 || len(of[key]) > 100 {
			want(a, "/account/"+key+"/transactions?limit=1000", "", clientlib.AccountTransactions{Pubkey: key, Transactions: of[key], HistoryFrom: l.blocks[0].Slot})
		}
	}
	a.wantMissing("/transaction/"+base58.Encode(append([]byte{9}, make([]byte, 63)...)), "")
}

// checkAccounts asks for every key the blocks showed: one by one, and many at a time. The
// balances alone are the same numbers again; a fifth of them is enough.
func checkAccounts(a *api, l *recording) {
	a.Helper()
	slot := l.blocks[len(l.blocks)-1].Slot
	keys := inKeyOrder(maps.Keys(l.touched))
	for i, key := range keys {
		held := l.accounts[key]
		if held == nil {
			a.wantMissing("/account/"+key, "account not indexed")
			continue
		}
		want(a, "/account/"+key, held.unknown(), held.record(key))
		if i%5 == 0 {
			want(a, "/account/"+key+"/balance", "", clientlib.Balance{Pubkey: key, Lamports: held.lamports, Slot: slot})
		}
	}
	for some := range slices.Chunk(keys, 100) {
		var all clientlib.Accounts
		partial, lacks := "", false
		for _, key := range some {
			held := l.accounts[key]
			if held == nil {
				all.Accounts, lacks = append(all.Accounts, nil), true
				continue
			}
			record := held.record(key)
			all.Accounts, partial = append(all.Accounts, &record), max(partial, held.unknown()) // the longer list sorts after what it holds
		}
		if lacks {
			partial = orSome(partial)
		}
		want(a, "/accounts?keys="+strings.Join(some, ","), partial, all)
	}
	for program, accounts := range l.programs() {
		want(a, "/accounts/program/"+program, "executable,rent_epoch,accounts", clientlib.ProgramAccounts{ProgramID: program, Accounts: accounts})
	}
}

// orSome adds to a list of unknown fields that there may be more accounts than a list shows: recorded blocks show
// what they touch alone.
func orSome(unknown string) string { return strings.TrimPrefix(unknown+",accounts", ",") }

func checkTokens(a *api, l *recording) {
	a.Helper()
	for wallet, tokens := range l.tokens() {
		partial := ""
		if slices.ContainsFunc(tokens, func(t clientlib.Token) bool { return t.ProgramID == "" }) {
			partial = "owner"
		}
		want(a, "/account/"+wallet+"/tokens", orSome(partial), clientlib.Tokens{Pubkey: wallet, Tokens: tokens})
	}
}

// The whole folder of recorded blocks cannot be one ledger: the operator reads why.
func TestBlocksOfDifferentLedgersAreRefusedInOneLine(t *testing.T) {
	paths := []string{datatest.Path(t, "blocks/mainnet-0-9.blocks.json"), datatest.Path(t, "blocks/devnet-314167369.json")}
	r := begin(t, "--data-dir", t.TempDir(), "--source", "file:"+strings.Join(paths, ","))
	ledgertest.Equal(t, <-r.code, exitFailure, "exit code")
	last := slices.Collect(strings.Lines(r.errs.String()))
	if len(last) == 0 || !strings.HasPrefix(last[len(last)-1], "ledgerd: ") || !strings.Contains(r.errs.String(), fmt.Sprint(314167368)) {
		t.Errorf("printed %q, want a last line that names the missing parent in %s", r.errs, filepath.Base(paths[1]))
	}
}
