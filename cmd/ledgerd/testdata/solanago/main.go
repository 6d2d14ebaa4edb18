// Command solanago asks a node with gagliardetto/solana-go as it is, and ends with what is not as it should be. It is a module of its own, because
// that library pulls in much that a node does not need. It is given the address of JSON-RPC and then, of a node that stands still, that of REST, a
// wallet with tokens and a mint, or the program whose accounts are followed.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
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
	same("supply", got(c.GetTokenSupply(background, want.Mint, level)).Value.Amount, want.Supply)
	history := got(c.GetSignaturesForAddressWithOpts(background, want.Wallet, &rpc.GetSignaturesForAddressOpts{Commitment: level}))
	same("newest transaction", history[0].Signature, want.Signature)
	same("status", got(c.GetSignatureStatuses(background, true, want.Signature)).Value[0].Slot, history[0].Slot)
}

func follow(url string, program solana.PublicKey) {
	c := got(ws.Connect(background, strings.Replace(url, "http", "ws", 1)))
	slots, roots := got(c.SlotSubscribe()), got(c.RootSubscribe())
	members := got(c.ProgramSubscribe(program, rpc.CommitmentProcessed))
	for before := range 3 {
		if s := got(slots.Recv(background)); s.Parent >= s.Slot || s.Root > s.Parent {
			panic(fmt.Sprintf("slot %d is told as %+v", before, s))
		}
	}
	if first, second := *got(roots.Recv(background)), *got(roots.Recv(background)); first >= second {
		panic(fmt.Sprintf("root %d follows %d", second, first))
	}
	member := got(members.Recv(background))
	account := got(c.AccountSubscribe(member.Value.Pubkey, rpc.CommitmentProcessed))
	account.Unsubscribe()
	members.Unsubscribe()

	asked := rpc.New(url)
	slot := got(asked.GetSlot(background, rpc.CommitmentConfirmed)) // which is not final yet
	block := got(asked.GetBlockWithOpts(background, slot, &rpc.GetBlockOpts{TransactionDetails: rpc.TransactionDetailsSignatures, Commitment: rpc.CommitmentConfirmed}))
	for range 2 { // to come, and known
		became := got(got(c.SignatureSubscribe(block.Signatures[0], rpc.CommitmentFinalized)).Recv(background))
		same("slot of a transaction", became.Context.Slot, slot)
	}
	c.Close()
}
