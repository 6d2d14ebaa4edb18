package file

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/mr-tron/base58"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/datatest"
)

// oracleAccounts returns the accounts of a recorded file, with plain maps: one object or a
// list, keys as text or bytes.
func oracleAccounts(t *testing.T, path string) (list []map[string]any) {
	t.Helper()
	decoder := json.NewDecoder(bytes.NewReader(datatest.Read(t, path)))
	decoder.UseNumber()
	var v any
	if err := decoder.Decode(&v); err != nil {
		t.Fatal(err)
	}
	entries, ok := v.([]any)
	if !ok {
		entries = []any{v}
	}
	for _, v := range entries {
		m := v.(map[string]any)
		if inner, ok := m["account"].(map[string]any); ok {
			inner["pubkey"], inner["slot"] = m["pubkey"], m["slot"]
			m = inner
		}
		list = append(list, m)
	}
	return list
}

func oracleBytes(v any) []byte {
	switch v := v.(type) {
	case string:
		raw, _ := base58.Decode(v)
		return raw
	case []any:
		if len(v) == 2 && fmt.Sprint(v[1]) == "base64" {
			raw, _ := base64.StdEncoding.DecodeString(v[0].(string))
			return raw
		}
		raw := make([]byte, len(v))
		for i, n := range v {
			fmt.Sscan(fmt.Sprint(n), &raw[i])
		}
		return raw
	}
	return nil
}

// slotWrite is an account of base state.
type slotWrite struct {
	slot ledger.Slot
	ledger.AccountWrite
}

// readAccounts returns the base state of recorded files, after it was compared, in order, with what they record.
func readAccounts(t *testing.T, paths ...string) (got []slotWrite) {
	t.Helper()
	var want []slotWrite
	for _, path := range paths {
		for _, state := range bases(t, path) {
			for _, w := range state.Accounts {
				got = append(got, slotWrite{state.Slot, w})
			}
		}
		for _, m := range oracleAccounts(t, path) {
			w := slotWrite{AccountWrite: ledger.AccountWrite{
				Pubkey: ledger.Pubkey(oracleBytes(m["pubkey"])), Owner: ledger.Pubkey(oracleBytes(m["owner"])),
				Executable: m["executable"] == true, Known: ledger.FieldOwner | ledger.FieldExecutable,
			}}
			fmt.Sscan(text(m["lamports"]), &w.Lamports)
			fmt.Sscan(text(m["slot"]), &w.slot)
			if n, _ := fmt.Sscan(text(m["rentEpoch"]), &w.RentEpoch); n == 1 {
				w.Known |= ledger.FieldRentEpoch
			}
			w.SetTokenFacts(oracleBytes(m["data"]))
			want = append(want, w)
		}
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
	return got
}

func TestGenesisAddsUpToTheFirstSupply(t *testing.T) {
	var sum ledger.Lamports
	for _, w := range readAccounts(t, datatest.Path(t, "accounts/mainnet-genesis.accounts.json")) {
		sum += w.Lamports
	}
	if want := ledger.Lamports(500_000_000_000_000_000); sum != want {
		t.Errorf("%d lamports, want %d", sum, want)
	}
}

func TestRecordedAccountUpdatesKeepSlotAndTokenFacts(t *testing.T) {
	got := readAccounts(t, datatest.Path(t, "accounts/account-updates.json"))
	if len(got) != 84 {
		t.Fatalf("%d updates recorded, want 84", len(got))
	}
	var decoded []struct {
		Source, Pubkey, Kind string
		Slot                 *ledger.Slot
	}
	if err := json.Unmarshal(datatest.Read(t, datatest.Path(t, "vectors/spl-token-decoded.json")), &decoded); err != nil {
		t.Fatal(err)
	}
	kinds := map[string]string{}
	for _, d := range decoded {
		if strings.Contains(d.Source, "account-updates") && d.Slot != nil {
			kinds[fmt.Sprintf("%s at %d", d.Pubkey, *d.Slot)] = d.Kind
		}
	}
	found := 0
	for _, w := range got {
		kind, ok := kinds[fmt.Sprintf("%s at %d", w.Pubkey, w.slot)]
		isMint := strings.Contains(strings.ToLower(kind), "mint")
		if w.Known != ledger.FieldsAll || (w.Mint != nil) != (ok && isMint) || (w.Token != nil) != (ok && !isMint) {
			t.Errorf("%+v; the vectors say %q", w, kind)
		}
		if ok {
			found++
		}
	}
	if found != len(kinds) || found == 0 {
		t.Errorf("%d updates with a vector, want %d", found, len(kinds))
	}
}

func TestAccountsWithByteListsAreRead(t *testing.T) {
	paths, err := filepath.Glob(filepath.Join(datatest.Path(t, "accounts/vixen"), "*"))
	if err != nil || len(paths) != 4 {
		t.Fatalf("%d files, %v; want 4", len(paths), err)
	}
	got := readAccounts(t, paths...)
	// PERPH…: rent epoch 2^64-1, an executable of the upgradeable loader.
	if w := got[0]; w.RentEpoch != 1<<64-1 || !w.Executable || w.Lamports != 1141452 {
		t.Errorf("first account is %+v", w)
	}
	if w := got[3]; w.Mint == nil || w.Mint.Decimals != 10 {
		t.Errorf("the mint's facts are %+v", w.Mint)
	}
}

func TestAccountFilesOfTheCommandLineAreRead(t *testing.T) {
	paths, err := filepath.Glob(filepath.Join(datatest.Path(t, "vectors/kit-accounts"), "*"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("%d files, %v", len(paths), err)
	}
	for _, path := range paths {
		name := filepath.Base(path)
		w := readAccounts(t, path)[0]
		isMint := strings.HasPrefix(name, "spl-token") && strings.Contains(name, "mint")
		isToken := strings.Contains(name, "token-account") && !isMint || name == "spl-token-22-account-mega-token.json"
		if (w.Token != nil) != isToken || !isMint && w.Mint != nil {
			t.Errorf("%s: token facts %+v, mint facts %+v", name, w.Token, w.Mint)
		}
	}
}

func TestAccountInfoTakesItsKeyFromTheNameOfTheFile(t *testing.T) {
	const name = "GetAccountInfoResponse.json"
	path := datatest.Path(t, "rpc/http/Accounts/"+name)
	s, _ := open(t, path)
	if _, err := run(s, nil); err == nil || !strings.HasSuffix(err.Error(), "pubkey is neither in the object nor in the name of the file") {
		t.Errorf("without a key in the name: err = %v", err)
	}
	k := testKey(9)
	got := bases(t, write(t, "account-"+k+".json", string(datatest.Read(t, path))))
	w := got[0].Accounts[0]
	if got[0].Slot != 79200467 || w.Pubkey.String() != k || w.Lamports != 5478840 || w.RentEpoch != 195 || w.Known != ledger.FieldsAll {
		t.Errorf("slot %d, %+v", got[0].Slot, w)
	}
}

func TestProgramAccountsAreBaseState(t *testing.T) {
	path := datatest.Path(t, "rpc/http/Accounts/GetProgramAccountsResponse.json")
	got := bases(t, path)
	if len(got) != 1 || got[0].Slot != 0 || len(got[0].Accounts) != 2 ||
		got[0].Accounts[0].Pubkey.String() != "FzNKvS4SCHDoNbnnfhmGSLVRCLNBUuGecxdvobSGmWMh" || got[0].Accounts[1].Lamports != 3486960 {
		t.Errorf("got %+v", got[0])
	}
	s, _ := open(t, datatest.Path(t, "rpc/http/Accounts/GetMultipleAccountsResponse.json"))
	if _, err := run(s, nil); err == nil || !strings.HasSuffix(err.Error(), "account 1: pubkey is missing") {
		t.Errorf("accounts without keys: err = %v", err)
	}
}

func TestParsedAccountDataTeachesTokenFacts(t *testing.T) {
	k := testKey(1)
	read := func(name string) ledger.AccountWrite {
		got := bases(t, write(t, k+".json", string(datatest.Read(t, datatest.Path(t, "rpc/http/Accounts/"+name)))))
		return got[0].Accounts[0]
	}
	w := read("GetTokenAccountInfoResponse.json")
	want := ledger.TokenAccount{
		Mint: mustKey("2v6JjYRt93Z1h8iTZavSdGdDufocHCFKT8gvHpg3GNko"), Owner: mustKey("47vp5BqxBQoMJkitajbsZRhyAR5phW28nKPvXhFDKTFH"), Amount: 1,
		Details: ledger.Some(ledger.TokenDetails{State: ledger.TokenInitialized}),
	}
	if w.Token == nil || *w.Token != want || w.Mint != nil || w.Known != ledger.FieldsAll {
		t.Errorf("token account: %+v, token %+v", w, w.Token)
	}
	w = read("GetTokenMintInfoResponse.json")
	if w.Mint == nil || *w.Mint != (ledger.Mint{Supply: ledger.Some(uint64(1)), Scaled: ledger.Some(false)}) || w.Token != nil {
		t.Errorf("mint: %+v, mint %+v", w, w.Mint)
	}
}

func mustKey(s string) ledger.Pubkey {
	k, err := ledger.ParsePubkey(s)
	if err != nil {
		panic(err)
	}
	return k
}
