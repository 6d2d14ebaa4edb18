// Command solanago asks a node with gagliardetto/solana-go as it is, and ends with what is not as it should be. It is a module of its own, because
// that library pulls in much that a node does not need. It is given the address of JSON-RPC and then, of a node that stands still, that of REST, a
// wallet with tokens and a mint, or the program whose accounts are followed.
package main

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/gagliardetto/solana-go/rpc"
	"github.com/gagliardetto/solana-go/rpc/ws"
)

var background, stop = context.WithTimeout(context.Background(), 5*time.Minute)

func main() {
	defer stop()
	if url := os.Args[1]; len(os.Args) == 3 {
		follow(url, solana.MustPublicKeyFromBase58(os.Args[2]))
	} else {
		read(rpc.New(url), restSays(os.Args[2], os.Args[3], os.Args[4]))
	}
}

// got returns what a call returned, which must not be an error.
func got[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// same holds a value against another as both are written.
func same(what string, got, want any) {
	if fmt.Sprint(got) != fmt.Sprint(want) {
		panic(fmt.Sprintf("%s: got %v, want %v", what, got, want))
	}
}

// told is what REST says of the node: its account is a token account.
type told struct {
	Wallet, Mint, Account solana.PublicKey
	Lamports, Slot        uint64
	Amount, Supply        string
	Data                  []byte
	Blockhash             solana.Hash
	Signature             solana.Signature
}

// restSays asks REST.
func restSays(rest, wallet, mint string) (t told) {
	ask := func(path string, into any) {
		response := got(http.Get(rest + path))
		defer response.Body.Close()
		if err := json.NewDecoder(response.Body).Decode(into); err != nil {
			panic(err)
		}
	}
	t.Wallet, t.Mint = solana.MustPublicKeyFromBase58(wallet), solana.MustPublicKeyFromBase58(mint)
	const finalized = "commitment=finalized"
	ask("/blocks/latest?"+finalized, &t)
	ask("/account/"+wallet+"?"+finalized, &t)
	var held struct {
		Tokens []struct {
			Account solana.PublicKey `json:"token_account"`
			Program solana.PublicKey `json:"program_id"`
			Amount  string
		}
	}
	ask("/account/"+wallet+"/tokens?"+finalized, &held)
	for _, h := range held.Tokens {
		if h.Program == solana.TokenProgramID && t.Amount == "" {
			t.Account, t.Amount = h.Account, h.Amount
		}
	}
	var shown struct {
		Accounts     []struct{ Data []byte }
		Mint         struct{ Supply string }
		Transactions []struct{ Signature solana.Signature }
	}
	ask("/accounts?include=data&keys="+t.Account.String()+"&"+finalized, &shown)
	ask("/account/"+mint+"?include=token&"+finalized, &shown)
	ask("/account/"+wallet+"/transactions?limit=1&"+finalized, &shown)
	t.Data, t.Supply, t.Signature = shown.Accounts[0].Data, shown.Mint.Supply, shown.Transactions[0].Signature
	return t
}

// genesis is --genesis-hash of the node.
const genesis = "5eykt4UsFv8P8NJdTREpY1vzqKqZKvdpKuc147dw2N9d"

func read(c *rpc.Client, want told) {
	const level = rpc.CommitmentFinalized
	slot := want.Slot
	same("slot", got(c.GetSlot(background, level)), slot)
	same("epoch", got(c.GetEpochInfo(background, level)).AbsoluteSlot, slot)
	same("slots of an epoch", got(c.GetEpochSchedule(background)).SlotsPerEpoch, 432000)
	same("health", got(c.GetHealth(background)), "ok")
	hash := got(c.GetLatestBlockhash(background, level)).Value
	same("blockhash", hash.Blockhash, want.Blockhash)
	same("height", got(c.GetBlockHeight(background, level))+150, hash.LastValidBlockHeight)
	same("validity", got(c.IsBlockhashValid(background, want.Blockhash, level)).Value, true)
	_, _ = got(c.GetVersion(background)), got(c.GetIdentity(background))
	same("genesis", got(c.GetGenesisHash(background)), genesis)
	first := got(c.GetFirstAvailableBlock(background))
	same("oldest slot", got(c.MinimumLedgerSlot(background)), first)
	blocks := got(c.GetBlocks(background, first, &slot, level))
	same("newest block", blocks[len(blocks)-1], slot)
	same("limited blocks", *got(c.GetBlocksWithLimit(background, first, 3, level)), blocks[:3])
	block := got(c.GetBlockWithOpts(background, slot, &rpc.GetBlockOpts{TransactionDetails: rpc.TransactionDetailsSignatures, Commitment: level}))
	same("block", []any{block.Blockhash, block.BlockTime}, []any{want.Blockhash, got(c.GetBlockTime(background, slot))})

	same("balance", got(c.GetBalance(background, want.Wallet, level)).Value, want.Lamports)
	whole := func(a *rpc.Account) any { return a.Data.GetBinary() }
	account := got(c.GetAccountInfoWithOpts(background, want.Account, &rpc.GetAccountInfoOpts{Encoding: solana.EncodingBase64Zstd, Commitment: level}))
	same("data", whole(account.Value), want.Data)
	several := got(c.GetMultipleAccountsWithOpts(background, []solana.PublicKey{want.Account, {1}}, &rpc.GetMultipleAccountsOpts{Commitment: level}))
	same("data of several, of which one is not there", []any{whole(several.Value[0]), several.Value[1] == nil}, []any{want.Data, true})
	members := got(c.GetProgramAccountsWithOpts(background, solana.TokenProgramID, &rpc.GetProgramAccountsOpts{Commitment: level, Filters: []rpc.RPCFilter{
		{DataSize: 165}, {Memcmp: &rpc.RPCFilterMemcmp{Offset: 0, Bytes: want.Data[:64]}},
	}}))
	same("member", []any{len(members), members[0].Pubkey, whole(members[0].Account)}, []any{1, want.Account, want.Data})
	held := got(c.GetTokenAccountsByOwner(background, want.Wallet, &rpc.GetTokenAccountsConfig{ProgramId: &solana.TokenProgramID}, &rpc.GetTokenAccountsOpts{Commitment: level}))
	same("token account", held.Value[0].Pubkey, want.Account)
	same("amount", got(c.GetTokenAccountBalance(background, want.Account, level)).Value.Amount, want.Amount)
	largest := got(c.GetTokenLargestAccounts(background, want.Mint, level)).Value
	same("amount of the largest", got(c.GetTokenAccountBalance(background, largest[0].Address, level)).Value.Amount, largest[0].Amount)
	lent := got(c.GetProgramAccountsWithOpts(background, solana.TokenProgramID, &rpc.GetProgramAccountsOpts{Commitment: level, Filters: []rpc.RPCFilter{
		{DataSize: 165}, {Memcmp: &rpc.RPCFilterMemcmp{Offset: 72, Bytes: []byte{1, 0, 0, 0}}},
	}}))[0] // one that has a delegate
	mint, delegate := solana.PublicKeyFromBytes(lent.Account.Data.GetBinary()[:32]), solana.PublicKeyFromBytes(lent.Account.Data.GetBinary()[76:108])
	delegated := got(c.GetTokenAccountsByDelegate(background, delegate, &rpc.GetTokenAccountsConfig{Mint: &mint}, &rpc.GetTokenAccountsOpts{Commitment: level})).Value
	same("an account that a delegate may spend", slices.ContainsFunc(delegated, func(a *rpc.TokenAccount) bool { return a.Pubkey == lent.Pubkey }), true)
	same("supply", got(c.GetTokenSupply(background, want.Mint, level)).Value.Amount, want.Supply)
	history := got(c.GetSignaturesForAddressWithOpts(background, want.Wallet, &rpc.GetSignaturesForAddressOpts{Commitment: level}))
	same("newest transaction", history[0].Signature, want.Signature)
	same("status", got(c.GetSignatureStatuses(background, true, want.Signature)).Value[0].Slot, history[0].Slot)
}

// fold is what was told: of forks since the program began, of all else since the present connection did.
type fold struct {
	sync.Mutex
	Name                      string
	Starts, Forks, Signatures int
	Tip, Root                 uint64
	Wrong                     string
	Accounts, Members         map[string]string
}

// locked folds what came.
func (f *fold) locked(do func()) {
	f.Lock()
	defer f.Unlock()
	do()
}

// follow follows slots, roots, signatures and the accounts of a program, and comes back where the node was away, which the library leaves to its
// callers. For every line on the standard input it prints what was told.
func follow(url string, program solana.PublicKey) {
	f := &fold{Name: "solana-go", Wrong: "it has not begun"}
	go func() {
		for ; ; time.Sleep(50 * time.Millisecond) {
			err := f.listen(url, program)
			f.locked(func() { f.Wrong = err.Error() })
		}
	}()
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		f.locked(func() { fmt.Println(string(got(json.Marshal([]*fold{f})))) })
	}
}

// listening is one connection of a fold, which ends with its first error.
type listening struct {
	*fold
	ctx  context.Context
	end  context.CancelCauseFunc
	ends sync.WaitGroup
}

// each folds what is received until the connection ends.
func each[T any](l *listening, receive func(context.Context) (T, error), take func(T)) {
	l.ends.Go(func() {
		for l.ctx.Err() == nil {
			if one, err := receive(l.ctx); err != nil {
				l.end(err)
			} else {
				l.locked(func() { take(one) })
			}
		}
	})
}

// listen folds what one connection is told, until it ends.
func (f *fold) listen(url string, program solana.PublicKey) error {
	l := &listening{fold: f}
	defer l.ends.Wait()
	l.ctx, l.end = context.WithCancelCause(background)
	defer l.end(nil)
	asked := rpc.New(url)
	members, err := asked.GetProgramAccounts(l.ctx, program)
	if err != nil {
		return err
	}
	c, err := ws.Connect(l.ctx, strings.Replace(url, "http", "ws", 1))
	if err != nil {
		return err
	}
	defer c.Close()
	f.locked(func() {
		f.Starts, f.Signatures, f.Tip, f.Root, f.Wrong = f.Starts+1, 0, 0, 0, ""
		f.Accounts, f.Members = map[string]string{}, map[string]string{}
	})
	slots, err := c.SlotSubscribe()
	roots, err2 := c.RootSubscribe()
	changes, err3 := c.ProgramSubscribe(program, rpc.CommitmentProcessed)
	if err := errors.Join(err, err2, err3); err != nil {
		return err
	}
	each(l, slots.Recv, f.slot)
	each(l, roots.Recv, f.rooted)
	each(l, changes.Recv, func(m *ws.ProgramResult) { f.Members[m.Value.Pubkey.String()] = text(m.Value.Account) })
	for _, m := range members {
		account, err := c.AccountSubscribe(m.Pubkey, rpc.CommitmentProcessed)
		if err != nil {
			return err
		}
		each(l, account.Recv, func(a *ws.AccountResult) { f.Accounts[m.Pubkey.String()] = text(a.Value) })
	}
	outcome := func(ctx context.Context) (int, error) { return outcomes(ctx, asked, c) }
	each(l, outcome, func(n int) { f.Signatures += n })
	<-l.ctx.Done()
	return context.Cause(l.ctx)
}

// text returns the data of an account as REST writes it.
func text(a *rpc.Account) string { return base64.StdEncoding.EncodeToString(a.Data.GetBinary()) }

func (f *fold) slot(s *ws.SlotResult) {
	if s.Parent >= s.Slot || s.Root > s.Parent {
		panic(fmt.Sprintf("a slot is told as %+v", s))
	}
	if f.Tip > 0 && s.Parent != f.Tip {
		f.Forks++
	}
	f.Tip = s.Slot
}

func (f *fold) rooted(root *ws.RootResult) {
	if uint64(*root) <= f.Root {
		panic(fmt.Sprintf("root %d follows %d", *root, f.Root))
	}
	f.Root = uint64(*root)
}

// outcomes returns how often it was told what became of a transaction: when it is final, and again, at once, when that is known.
func outcomes(ctx context.Context, asked *rpc.Client, c *ws.Client) (n int, err error) {
	slot, err := asked.GetSlot(ctx, rpc.CommitmentConfirmed) // which is not final yet
	if err != nil {
		return 0, err
	}
	block, err := asked.GetBlockWithOpts(ctx, slot, &rpc.GetBlockOpts{TransactionDetails: rpc.TransactionDetailsSignatures, Commitment: rpc.CommitmentConfirmed})
	if err != nil {
		return 0, err
	}
	for ; n < 2; n++ {
		outcome, err := c.SignatureSubscribe(block.Signatures[0], rpc.CommitmentFinalized)
		if err != nil {
			return 0, err
		}
		became, err := outcome.Recv(ctx)
		if err != nil {
			return 0, err
		}
		same("slot of a transaction", became.Context.Slot, slot)
	}
	return n, nil
}
