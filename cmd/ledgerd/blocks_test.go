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
	for _, f := range recordedFiles {
		t.Run(strings.ReplaceAll(filepath.Base(f.name), ",", "+"), func(t *testing.T) {
			t.Parallel()
			var paths []string
			for name := range strings.SplitSeq(f.name, ",") {
				paths = append(paths, datatest.Path(t, name))
			}
			l := readBlocks(t, f.slot, paths...)
			if len(l.blocks) != f.blocks || len(l.newestFirst()) != f.transactions {
				t.Fatalf("the recording has %d blocks and %d transactions", len(l.blocks), len(l.newestFirst()))
			}
			r := start(t, "--data-dir", t.TempDir(), "--source", "file:"+strings.Join(paths, ","))
			r.ending(t) // a node is ready from its first block on
			a := dial(t, r)
			var checks sync.WaitGroup
			for _, check := range []func(*api, *recording){checkBlocks, checkTransactions, checkAccounts, checkTokens, checkRecent} {
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
		a.want("/blocks/latest"+commitment, "", last.blockRecord)
	}
	for _, b := range l.blocks {
		plain, signatures, records := b, b, b
		plain.Signatures, plain.Records = nil, nil
		signatures.Records, records.Signatures = nil, nil
		path := fmt.Sprintf("/blocks/%d", b.Slot)
		a.want(path, "", plain)
		a.want(path+"?include=signatures", "", signatures)
		a.want(path+"?include=transactions", "", records)
	}
	a.wantMissing(fmt.Sprintf("/blocks/%d", last.Slot+1), "slot not yet produced")
	if first.Slot > 0 {
		a.wantMissing(fmt.Sprintf("/blocks/%d", first.Slot-1), "slot not indexed")
	}
	if got := a.ok("/blocks/latest").header.Get("X-Ledger-Slot"); got != fmt.Sprint(last.Slot) {
		a.Errorf("X-Ledger-Slot %q, want %d", got, last.Slot)
	}
}

func checkTransactions(a *api, l *recording) {
	a.Helper()
	for _, t := range l.newestFirst() {
		a.want("/transaction/"+t.Signature, "", t)
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
		a.want("/account/"+key, held.unknown(), held.record(key))
		if i%5 == 0 {
			a.want("/account/"+key+"/balance", "", balanceRecord{key, held.lamports, slot})
		}
	}
	for some := range slices.Chunk(keys, 100) {
		var want accountsRecord
		partial, lacks := "", false
		for _, key := range some {
			held := l.accounts[key]
			if held == nil {
				want.Accounts, lacks = append(want.Accounts, nil), true
				continue
			}
			record := held.record(key)
			want.Accounts, partial = append(want.Accounts, &record), longer(partial, held.unknown())
		}
		if lacks {
			partial = orSome(partial)
		}
		a.want("/accounts?keys="+strings.Join(some, ","), partial, want)
	}
	for program, accounts := range l.programs() {
		a.want("/accounts/program/"+program, "executable,rent_epoch,accounts", programList{ProgramID: program, Accounts: accounts})
		checkProgramPages(a, program, accounts)
	}
}

// orSome adds to a list of unknown fields that there may be more accounts than a list shows: recorded blocks show
// what they touch alone.
func orSome(unknown string) string {
	if unknown == "" {
		return "accounts"
	}
	return unknown + ",accounts"
}

// longer is the union of two lists of unknown fields, of which one holds the other.
func longer(x, y string) string {
	if len(x) > len(y) {
		return x
	}
	return y
}

// checkProgramPages reads a program's list in pages of a seventh of it.
func checkProgramPages(a *api, program string, want []accountRecord) {
	a.Helper()
	var got []accountRecord
	for _, page := range pages(a, fmt.Sprintf("/accounts/program/%s?limit=%d", program, max(1, len(want)/7)), "cursor", programList.next) {
		got = append(got, page.Accounts...)
	}
	if !slices.Equal(got, want) {
		a.Errorf("pages of program %s hold %d accounts, want %d in key order", program, len(got), len(want))
	}
}

func checkTokens(a *api, l *recording) {
	a.Helper()
	for wallet, tokens := range l.tokens() {
		a.want("/account/"+wallet+"/tokens", orSome(partialOfTokens(tokens)), tokenList{Pubkey: wallet, Tokens: tokens})
		var got, want []string
		for _, t := range tokens {
			want = append(want, t.TokenAccount)
		}
		for _, page := range pages(a, "/account/"+wallet+"/tokens?limit=1", "cursor", func(p tokenList) *string { return p.NextCursor }) {
			for _, t := range page.Tokens {
				got = append(got, t.TokenAccount)
			}
		}
		if !slices.Equal(got, want) {
			a.Errorf("tokens of %s, one a page: %v, want %v", wallet, got, want)
		}
	}
}

func partialOfTokens(tokens []tokenRecord) string {
	for _, t := range tokens {
		if t.ProgramID == "" {
			return "owner"
		}
	}
	return ""
}

// checkRecent reads the list of all transactions, newest first, in pages of many sizes, and
// its intervals from both ends.
func checkRecent(a *api, l *recording) {
	a.Helper()
	all := l.newestFirst()
	n := len(all)
	a.want("/transactions/recent?limit=1000", "", recentRecord{Transactions: all})
	for _, limit := range []int{1, 7, 100, n - 1, n, n + 1, 1000} {
		if limit < 1 || limit > 1000 || n/limit > 100 {
			continue
		}
		checkInterval(a, all, limit, "")
	}
	step := max(1, n/5)
	for older := 0; older < n; older += step {
		after := "&after=" + all[older].Signature
		checkInterval(a, all[:older], 1000, after)
		checkInterval(a, all[:older], step, after)
		if newer := older - step - 1; newer >= 0 { // backwards, window by window
			checkInterval(a, all[newer+1:older], 1000, after+"&before="+all[newer].Signature)
		}
	}
	reversed := fmt.Sprintf("/transactions/recent?before=%s&after=%s", all[n-1].Signature, all[0].Signature)
	a.want(reversed, "", recentRecord{Transactions: []*transactionRecord{}})
	unknown := base58.Encode(append([]byte{9}, make([]byte, 63)...))
	a.wantMissing("/transactions/recent?before="+unknown, "")
	a.wantMissing("/transactions/recent?after="+unknown, "")
}

// checkInterval follows next_before through an interval and compares what came.
func checkInterval(a *api, want []*transactionRecord, limit int, interval string) {
	a.Helper()
	var got []string
	all := pages(a, fmt.Sprintf("/transactions/recent?limit=%d%s", limit, interval), "before", func(p recentRecord) *string { return p.NextBefore })
	for i, page := range all {
		for _, t := range page.Transactions {
			got = append(got, t.Signature)
		}
		if page.NextBefore != nil && (len(page.Transactions) != limit || *page.NextBefore != got[len(got)-1]) {
			a.Errorf("limit %d%s: page %d holds %d and says next_before %s", limit, interval, i+1, len(page.Transactions), *page.NextBefore)
		}
	}
	if !slices.EqualFunc(got, want, func(g string, w *transactionRecord) bool { return g == w.Signature }) {
		a.Errorf("limit %d%s: %d transactions in %d pages, want %d in order", limit, interval, len(got), len(all), len(want))
	}
	if most := max(1, (len(want)+limit-1)/limit); len(all) != most {
		a.Errorf("limit %d%s: %d pages, want %d: next_before is null exactly at the end", limit, interval, len(all), most)
	}
}
