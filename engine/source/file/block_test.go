package file

import (
	"fmt"
	"reflect"
	"testing"

	"ledgerd/engine/ledger"
)

// transactionOf returns the JSON of a transaction that touches one account.
func transactionOf(account, meta string) string {
	return fmt.Sprintf(`{"transaction":{"signatures":[%q],"message":{"accountKeys":[%q]}},"meta":%s}`, testSignature(1), account, meta)
}

// blockOf returns the block that the node's JSON with these fields is read as.
func blockOf(t *testing.T, fields string) *ledger.Block {
	t.Helper()
	return blocks(t, write(t, "a", fmt.Sprintf(`{"slot":6,"parentSlot":5,"blockhash":%q,%s}`, testKey(9), fields)))[0]
}

func TestSuccessAndFeeOfATransaction(t *testing.T) {
	yes, no, unknown := ledger.Some(true), ledger.Some(false), ledger.Opt[bool]{}
	tests := map[string]struct {
		meta    string
		success ledger.Opt[bool]
		fee     ledger.Opt[ledger.Lamports]
	}{
		"not kept":             {`null`, unknown, ledger.Opt[ledger.Lamports]{}},
		"neither said":         {`{}`, unknown, ledger.Opt[ledger.Lamports]{}},
		"succeeded":            {`{"err":null,"fee":5}`, yes, ledger.Some(ledger.Lamports(5))},
		"failed":               {`{"err":{"InstructionError":[0,{"Custom":0}]},"fee":0}`, no, ledger.Some(ledger.Lamports(0))},
		"failed, in one word":  {`{"err":"InvalidRentPayingAccount","fee":18446744073709551615}`, no, ledger.Some(ledger.Lamports(1<<64 - 1))},
		"succeeded, by status": {`{"status":{"Ok":null}}`, yes, ledger.Opt[ledger.Lamports]{}},
		"failed, by status":    {`{"status":{"Err":"AccountInUse"}}`, no, ledger.Opt[ledger.Lamports]{}},
	}
	for name, tt := range tests {
		b := blockOf(t, `"transactions":[`+transactionOf(testKey(2), tt.meta)+`]`)
		if got := b.Transactions[0]; got.Success != tt.success || got.Fee != tt.fee || len(b.Accounts) != 0 {
			t.Errorf("%s: success %v, fee %v, %d writes; want %v, %v, none", name, got.Success, got.Fee, len(b.Accounts), tt.success, tt.fee)
		}
	}
}

func TestDetailsANodeMayLeaveOut(t *testing.T) {
	sig := testSignature(1)
	tests := map[string]struct {
		fields       string
		count        uint64
		transactions int
	}{
		"none":             {`"blockTime":1`, 0, 0},
		"null":             {`"transactions":null,"rewards":null`, 0, 0},
		"signatures alone": {fmt.Sprintf(`"signatures":[%q,%q]`, sig, sig), 2, 0},
		"accounts alone": {fmt.Sprintf(`"transactions":[{"transaction":{"signatures":[%q],"accountKeys":[{"pubkey":%q,"source":"transaction"},{"pubkey":%q,"source":"lookupTable"}]},
			"meta":{"err":null,"fee":5,"postBalances":[1,2]}}]`, sig, testKey(2), testKey(3)), 1, 1},
	}
	for name, tt := range tests {
		b := blockOf(t, tt.fields)
		if b.TransactionCount != tt.count || len(b.Transactions) != tt.transactions {
			t.Errorf("%s: count %d, %d transactions; want %d and %d", name, b.TransactionCount, len(b.Transactions), tt.count, tt.transactions)
		}
		if len(b.Accounts) != 2*tt.transactions {
			t.Errorf("%s: %d account writes", name, len(b.Accounts))
		}
	}
}

func TestRewardsComeAfterTransactions(t *testing.T) {
	k1, k2 := testKey(1), testKey(2)
	paid := `"transactions":[` + transactionOf(k1, `{"postBalances":[100]}`) + `],`
	reward := func(k string, lamports int, post string) string {
		return fmt.Sprintf(`{"pubkey":%q,"lamports":%d,"postBalance":%s}`, k, lamports, post)
	}
	tests := map[string]struct {
		fields string
		want   map[string]ledger.Lamports
	}{
		"a fee":                    {paid + `"rewards":[` + reward(k1, 5, "105") + `]`, map[string]ledger.Lamports{k1: 105}},
		"the last entry wins":      {paid + `"rewards":[` + reward(k2, 5, "7") + "," + reward(k2, 5, "12") + `]`, map[string]ledger.Lamports{k1: 100, k2: 12}},
		"a balance not recorded":   {paid + `"rewards":[` + reward(k1, 5, "0") + "," + reward(k2, 0, "0") + `]`, map[string]ledger.Lamports{k1: 100}},
		"no balance":               {paid + `"rewards":[` + reward(k1, 5, "null") + `]`, map[string]ledger.Lamports{k1: 100}},
		"rent took everything":     {paid + `"rewards":[` + reward(k1, -100, "0") + `]`, map[string]ledger.Lamports{k1: 0}},
		"without any transactions": {`"rewards":[` + reward(k2, 5, "18446744073709551615") + `]`, map[string]ledger.Lamports{k2: 1<<64 - 1}},
	}
	for name, tt := range tests {
		got := map[string]ledger.Lamports{}
		for _, w := range blockOf(t, tt.fields).Accounts {
			got[w.Pubkey.String()] = w.Lamports
		}
		if !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%s: got %v, want %v", name, got, tt.want)
		}
	}
}

func TestTokenBalancesTeachFacts(t *testing.T) {
	account, mint, wallet := testKey(1), testKey(2), testKey(3)
	row := func(fields, amount string) string {
		return fmt.Sprintf(`{"accountIndex":0,"mint":%q%s,"uiTokenAmount":%s}`, mint, fields, amount)
	}
	meta := func(before, after string) string {
		return `"transactions":[` + transactionOf(account, `{"postBalances":[9],"preTokenBalances":`+before+`,"postTokenBalances":`+after+`}`) + `]`
	}
	who := fmt.Sprintf(`,"owner":%q,"programId":%q`, wallet, ledger.Token2022Program)
	amount := `{"amount":"150","decimals":2,"uiAmountString":"1.5"}`
	facts := ledger.TokenAccount{Mint: mustKey(mint), Owner: mustKey(wallet), Amount: 150}
	nobody := facts
	nobody.Owner = ledger.Pubkey{}
	tests := map[string]struct {
		fields string
		want   ledger.AccountWrite
		scaled ledger.Opt[bool]
	}{
		"a balance":             {meta("[]", "["+row(who, amount)+"]"), ledger.AccountWrite{Known: ledger.FieldOwner | ledger.FieldToken, Owner: ledger.Token2022Program, Token: &facts}, ledger.Opt[bool]{}},
		"wallet not recorded":   {meta("[]", "["+row("", amount)+"]"), ledger.AccountWrite{Known: ledger.FieldToken, Token: &nobody, TokenOwnerUnknown: true}, ledger.Opt[bool]{}},
		"program not recorded":  {meta("[]", "["+row(fmt.Sprintf(`,"owner":%q`, wallet), amount)+"]"), ledger.AccountWrite{Known: ledger.FieldToken, Token: &facts}, ledger.Opt[bool]{}},
		"a mint that scales":    {meta("[]", "["+row(who, `{"amount":"150","decimals":2,"uiAmountString":"3"}`)+"]"), ledger.AccountWrite{Known: ledger.FieldOwner | ledger.FieldToken, Owner: ledger.Token2022Program, Token: &facts}, ledger.Some(true)},
		"amount shown as float": {meta("[]", "["+row(who, `{"amount":"150","decimals":2,"uiAmount":1.5}`)+"]"), ledger.AccountWrite{Known: ledger.FieldOwner | ledger.FieldToken, Owner: ledger.Token2022Program, Token: &facts}, ledger.Opt[bool]{}},
		"before, not after":     {meta("["+row(who, amount)+"]", "[]"), ledger.AccountWrite{Known: ledger.FieldToken}, ledger.Opt[bool]{}},
		"before and after":      {meta("["+row(who, `{}`)+"]", "["+row(who, amount)+"]"), ledger.AccountWrite{Known: ledger.FieldOwner | ledger.FieldToken, Owner: ledger.Token2022Program, Token: &facts}, ledger.Opt[bool]{}},
		"after not recorded":    {meta("["+row(who, amount)+"]", "null"), ledger.AccountWrite{}, ledger.Opt[bool]{}},
		"none":                  {meta("[]", "[]"), ledger.AccountWrite{}, ledger.Opt[bool]{}},
	}
	for name, tt := range tests {
		b := blockOf(t, tt.fields)
		tt.want.Pubkey, tt.want.Lamports = mustKey(account), 9
		if !reflect.DeepEqual(b.Accounts, []ledger.AccountWrite{tt.want}) {
			t.Errorf("%s: got %+v, want %+v", name, b.Accounts, tt.want)
		}
		if shown := tt.want.Token != nil; shown && (len(b.Mints) != 1 || b.Mints[0].Mint != (ledger.Mint{Decimals: 2, Scaled: tt.scaled})) || !shown && len(b.Mints) != 0 {
			t.Errorf("%s: mints %+v", name, b.Mints)
		}
	}
}
