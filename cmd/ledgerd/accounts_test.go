package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mr-tron/base58"

	"ledgerd/engine/ledger/datatest"
)

// shown is an account as a recorded file shows it.
type shown struct {
	source string // path below the recorded data
	slot   uint64
	record accountRecord
}

// readAccounts reads account files: of the updates of one account the newest stays.
func readAccounts(t *testing.T, sources ...string) map[string]shown {
	t.Helper()
	accounts := map[string]shown{}
	for _, source := range sources {
		var v any
		datatest.JSON(t, datatest.Path(t, source), &v)
		list, ok := v.([]any)
		if !ok {
			list = []any{v}
		}
		for _, v := range list {
			m := v.(map[string]any)
			s := shown{source: source}
			if slot, ok := m["slot"]; ok {
				s.slot = number(slot)
			}
			inner, ok := m["account"].(map[string]any)
			if !ok {
				inner = m
			}
			s.record = accountRecord{
				Pubkey: readKey(m["pubkey"]), Lamports: inner["lamports"].(json.Number), Owner: readKey(inner["owner"]),
				Executable: inner["executable"].(bool), RentEpoch: inner["rentEpoch"].(json.Number),
			}
			if before, ok := accounts[s.record.Pubkey]; !ok || s.slot >= before.slot {
				accounts[s.record.Pubkey] = s
			}
		}
	}
	return accounts
}

// readKey reads a key in base58 or as a list of bytes.
func readKey(v any) string {
	list, ok := v.([]any)
	if !ok {
		return v.(string)
	}
	var b []byte
	for _, n := range list {
		b = append(b, byte(number(n)))
	}
	return base58.Encode(b)
}

// decodedToken is a row of the recorded vectors: account data as the published decoders of
// the token programs read it.
type decodedToken struct {
	Source, Pubkey, Owner, Kind string
	Slot                        *uint64
	Decoded                     struct {
		Mint, Owner, Amount, DelegatedAmount string
		State                                int
		Decimals                             *json.Number
		Delegate, CloseAuthority             struct{ Value *string }
		Extensions                           struct {
			Value []struct {
				Kind string `json:"__kind"`
			}
		}
	}
}

// megaToken is a mint with so old a layout of one extension that the vectors leave it out.
// Its data says 9 decimals, and interest.
const megaToken = "5gSwsLGzyCwgwPJSnxjsQCaFeE19ZFaibHMLky9TDFim"

var megaTokenDecimals = json.Number("9")

// decodedTokens returns the holdings of every wallet, in key order, as far as the vectors
// know the data of these accounts.
func decodedTokens(t *testing.T, accounts map[string]shown) map[string][]tokenRecord {
	t.Helper()
	var rows []decodedToken
	datatest.JSON(t, datatest.Path(t, "vectors/spl-token-decoded.json"), &rows)
	newest := map[string]decodedToken{}
	for _, row := range rows {
		s, ok := accounts[row.Pubkey]
		if ok && s.source == row.Source && (row.Slot == nil || *row.Slot == s.slot) {
			newest[row.Pubkey] = row
		}
	}
	wallets := map[string][]tokenRecord{}
	for _, key := range inKeyOrder(maps.Keys(newest)) {
		row := newest[key]
		if row.Kind != "account" {
			continue
		}
		d := row.Decoded
		state := []string{"uninitialized", "initialized", "frozen"}[d.State]
		record := tokenRecord{
			TokenAccount: key, Mint: d.Mint, ProgramID: row.Owner, Amount: d.Amount, State: &state,
			Delegate: d.Delegate.Value, DelegatedAmount: &d.DelegatedAmount, CloseAuthority: d.CloseAuthority.Value,
		}
		if d.Mint == megaToken {
			record.Decimals = &megaTokenDecimals
		} else if mint, ok := newest[d.Mint]; ok {
			record.Decimals = mint.Decoded.Decimals
			plain := plainAmount(d.Amount, int(number(*mint.Decoded.Decimals)))
			record.UIAmount = &plain
			for _, e := range mint.Decoded.Extensions.Value {
				if e.Kind == "ScaledUiAmountConfig" || e.Kind == "InterestBearingConfig" {
					record.UIAmount = nil
				}
			}
		}
		wallets[d.Owner] = append(wallets[d.Owner], record)
	}
	return wallets
}

// folder returns the recorded files of a folder, in name order.
func folder(t *testing.T, name string) (sources []string) {
	t.Helper()
	entries, err := os.ReadDir(datatest.Path(t, name))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		sources = append(sources, name+"/"+e.Name())
	}
	return sources
}

func TestRecordedAccountsAreAnsweredAsRecorded(t *testing.T) {
	tests := map[string]struct {
		source  string // a file or a folder
		files   []string
		slot    uint64
		wallets int // with holdings that the vectors know
	}{
		"updates": {"accounts/account-updates.json", []string{"accounts/account-updates.json"}, 376489280, 4},
		"genesis": {"accounts/mainnet-genesis.accounts.json", []string{"accounts/mainnet-genesis.accounts.json"}, 0, 0},
		"vixen":   {"accounts/vixen", folder(t, "accounts/vixen"), 0, 0},
		"kit":     {"vectors/kit-accounts", folder(t, "vectors/kit-accounts"), 0, 4},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			accounts := readAccounts(t, tt.files...)
			a := dial(t, start(t, "--data-dir", t.TempDir(), "--source", "file:"+datatest.Path(t, tt.source)))
			programs := map[string][]accountRecord{}
			for _, key := range inKeyOrder(maps.Keys(accounts)) {
				record := accounts[key].record
				programs[record.Owner] = append(programs[record.Owner], record)
				a.want("/account/"+key, "", record)
				a.want("/account/"+key+"/balance", "", balanceRecord{key, record.Lamports, tt.slot})
			}
			for program, want := range programs {
				a.want("/accounts/program/"+program, "accounts", programList{ProgramID: program, Accounts: want})
				checkProgramPages(a, program, want)
			}
			wallets := decodedTokens(t, accounts)
			if len(wallets) != tt.wallets {
				t.Errorf("the vectors know holdings of %d wallets, want %d", len(wallets), tt.wallets)
			}
			for wallet, tokens := range wallets {
				a.want("/account/"+wallet+"/tokens", "accounts", tokenList{Pubkey: wallet, Tokens: tokens})
			}
			a.wantMissing("/blocks/latest", "")
			a.want("/transactions/recent", "", recentRecord{Transactions: []*transactionRecord{}})
		})
	}
}

// The whole folder of recorded blocks cannot be one ledger: the operator reads why.
func TestBlocksOfDifferentLedgersAreRefusedInOneLine(t *testing.T) {
	paths := []string{datatest.Path(t, "blocks/mainnet-0-9.blocks.json"), datatest.Path(t, "blocks/devnet-314167369.json")}
	r := begin(t, "--data-dir", t.TempDir(), "--source", "file:"+strings.Join(paths, ","))
	if code := <-r.code; code != exitFailure {
		t.Errorf("exit code %d, want %d", code, exitFailure)
	}
	last := slices.Collect(strings.Lines(r.errs.String()))
	if len(last) == 0 || !strings.HasPrefix(last[len(last)-1], "ledgerd: ") || !strings.Contains(r.errs.String(), fmt.Sprint(314167368)) {
		t.Errorf("printed %q, want a last line that names the missing parent in %s", r.errs, filepath.Base(paths[1]))
	}
}
