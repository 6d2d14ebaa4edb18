package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/datatest"
	"ledgerd/engine/ledger/ledgertest"
	"ledgerd/engine/source/file"
)

// recordings are recorded blocks in a form of a node.
var recordings = []string{
	"blocks/mainnet-254170887.json.gz",
	"blocks/devnet-270893658.json",
	"blocks/devnet-314167369.json",
	"blocks/excerpt-mainnet-100000000.json",
	"blocks/excerpt-mainnet-100000000-jsonparsed.json",
	"blocks/excerpt-mainnet-154808473.json",
	"blocks/excerpt-mainnet-child-of-1021084.json",
	"rpc/http/Blocks/GetBlockResponse.json",
	"blocks/mainnet-0-9.blocks.json",
	"blocks/mainnet-0-9.blocks.json,blocks/mainnet-10-19.blocks.json",
}

// What a node answers of recorded blocks is what they show: testdata/recorded.txt has the hashes of all answers of a kind. They were pinned beside a
// reading of each file from plain maps, with which each answer was compared. Answers that differ are kept, to be compared with those of another revision.
func TestRecordedBlocksAreAnsweredAsRecorded(t *testing.T) {
	const golden = "testdata/recorded.txt"
	want := string(readFile(t, golden))
	lines := make([]string, len(recordings))
	t.Run("files", func(t *testing.T) {
		for i, names := range recordings {
			t.Run(filepath.Base(names), func(t *testing.T) {
				t.Parallel()
				var paths []string
				for name := range strings.SplitSeq(names, ",") {
					paths = append(paths, datatest.Path(t, name))
				}
				for kind, answers := range recordedAnswers(t, strings.Join(paths, ",")) {
					line := fmt.Sprintf("%s %s %x\n", names, kind, sha256.Sum256([]byte(answers)))
					if lines[i] += line; !*update && !strings.Contains(want, line) {
						kept := filepath.Join(keptDir(t), kind)
						ledgertest.ErrorIs(t, os.WriteFile(kept, []byte(answers), 0o600), nil, "keeping the answers")
						t.Errorf("the answers of %s are others; they are in %s", kind, kept)
					}
				}
			})
		}
	})
	if *update {
		must(t, os.WriteFile(golden, []byte(strings.Join(lines, "")), 0o600))
	}
}

// recordedAnswers returns what a node answers of all that blocks name, by the kind of the question.
func recordedAnswers(t *testing.T, paths string) iter.Seq2[string, string] {
	source, err := file.Open(paths, quietLog())
	must(t, err)
	var slots, signatures, keys, owners, wallets []string
	must(t, source.Run(t.Context(), nil, func(_ context.Context, e ledger.Event) error {
		b, isBlock := e.(*ledger.Block)
		if !isBlock {
			return nil
		}
		slots = append(slots, fmt.Sprint(b.Slot))
		for _, tx := range b.Transactions {
			signatures = append(signatures, tx.Signature.String())
			for _, key := range tx.Accounts {
				keys = append(keys, key.String())
			}
		}
		for _, w := range b.Accounts {
			keys, owners = append(keys, w.Pubkey.String()), append(owners, w.Owner.String())
			if w.Token != nil {
				wallets = append(wallets, w.Token.Owner.String())
			}
		}
		return nil
	}))
	for _, all := range []*[]string{&slots, &signatures, &keys, &owners, &wallets} {
		slices.Sort(*all)
		*all = slices.Compact(*all)
	}
	v := launch(t, "--data-dir", t.TempDir(), "--source", "file:"+paths).ready()
	v.ending() // a node is ready from its first block on
	ask := func(b *strings.Builder, before string, of []string, after ...string) {
		for _, it := range of {
			for _, after := range after {
				got := v.get(before + it + after)
				fmt.Fprintf(b, "%s%s%s\n%d %s %s\n%s\n", before, it, after, got.status, got.header.Get("X-Ledger-Slot"), got.header.Get("X-Ledger-Partial"), got.body)
			}
		}
	}
	return func(yield func(kind, answers string) bool) {
		var blocks, transactions, accounts, lists strings.Builder
		ask(&blocks, "/blocks/", slots, "", "?include=signatures", "?include=transactions")
		ask(&blocks, "/blocks/latest", []string{""}, "", "?commitment=processed", "?commitment=confirmed", "?commitment=finalized")
		ask(&transactions, "/transaction/", signatures, "")
		ask(&transactions, "/transactions/recent?limit=1000", []string{""}, "")
		ask(&accounts, "/account/", keys, "", "/balance", "/transactions?limit=1000")
		for some := range slices.Chunk(keys, 100) {
			ask(&accounts, "/accounts?keys=", []string{strings.Join(some, ",")}, "")
		}
		ask(&lists, "/accounts/program/", owners, "")
		ask(&lists, "/account/", wallets, "/tokens")
		_ = yield("blocks", blocks.String()) && yield("transactions", transactions.String()) && yield("accounts", accounts.String()) && yield("lists", lists.String())
	}
}
