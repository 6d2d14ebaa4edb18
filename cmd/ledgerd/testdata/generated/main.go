// Generated makes a call of each kind with the client that oapi-codegen makes, and prints a line for each: the path, and what was decoded.
// Arguments: the node's address, and what to ask for.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"os"

	"generated/ledger"
)

// wanted is what to ask for.
type wanted struct {
	Slot                                                  uint64
	Signature, Key, Wallet, Mint, Program, Cursor, Nobody string
}

func main() {
	var w wanted
	if err := json.Unmarshal([]byte(os.Args[2]), &w); err != nil {
		log.Fatal(err)
	}
	c, err := ledger.NewClientWithResponses(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	ctx, limit, parts, token := context.Background(), 3, ledger.BlockParamsIncludeTransactions, ledger.AccountParamsIncludeToken
	health, err := c.HealthWithResponse(ctx, nil)
	show("/health", health.JSON200, health.HTTPResponse, err)
	status, err := c.StatusWithResponse(ctx)
	show("/status", status.JSON200, status.HTTPResponse, err)
	latest, err := c.LatestBlockWithResponse(ctx, nil)
	show("/blocks/latest", latest.JSON200, latest.HTTPResponse, err)
	block, err := c.BlockWithResponse(ctx, w.Slot, &ledger.BlockParams{MinSlot: &w.Slot, Include: &parts})
	show(fmt.Sprintf("/blocks/%d?include=transactions", w.Slot), block.JSON200, block.HTTPResponse, err)
	transaction, err := c.TransactionWithResponse(ctx, w.Signature, nil)
	show("/transaction/"+w.Signature, transaction.JSON200, transaction.HTTPResponse, err)
	recent, err := c.RecentTransactionsWithResponse(ctx, &ledger.RecentTransactionsParams{Limit: &limit, Before: &w.Signature})
	show("/transactions/recent?limit=3&before="+w.Signature, recent.JSON200, recent.HTTPResponse, err)
	history, err := c.AccountTransactionsWithResponse(ctx, w.Key, &ledger.AccountTransactionsParams{Limit: &limit})
	show("/account/"+w.Key+"/transactions?limit=3", history.JSON200, history.HTTPResponse, err)
	account, err := c.AccountWithResponse(ctx, w.Key, &ledger.AccountParams{Include: &token})
	show("/account/"+w.Key+"?include=token", account.JSON200, account.HTTPResponse, err)
	missing, err := c.AccountWithResponse(ctx, w.Nobody, nil)
	show("/account/"+w.Nobody, missing.JSON404, missing.HTTPResponse, err)
	balance, err := c.BalanceWithResponse(ctx, w.Key, nil)
	show("/account/"+w.Key+"/balance", balance.JSON200, balance.HTTPResponse, err)
	tokens, err := c.TokensWithResponse(ctx, w.Wallet, nil)
	show("/account/"+w.Wallet+"/tokens", tokens.JSON200, tokens.HTTPResponse, err)
	holders, err := c.HoldersWithResponse(ctx, w.Mint, &ledger.HoldersParams{Limit: &limit})
	show("/account/"+w.Mint+"/holders?limit=3", holders.JSON200, holders.HTTPResponse, err)
	program, err := c.ProgramAccountsWithResponse(ctx, w.Program, &ledger.ProgramAccountsParams{Limit: &limit, Cursor: &w.Cursor})
	show("/accounts/program/"+w.Program+"?limit=3&cursor="+w.Cursor, program.JSON200, program.HTTPResponse, err)
	accounts, err := c.AccountsWithResponse(ctx, &ledger.AccountsParams{Keys: []string{w.Key, w.Nobody}})
	show("/accounts?keys="+w.Key+","+w.Nobody, accounts.JSON200, accounts.HTTPResponse, err)
}

func show(path string, value any, response *http.Response, err error) {
	if err != nil {
		log.Fatalf("%s: %v", path, err)
	}
	line := struct {
		Path   string `json:"path"`
		Status int    `json:"status"`
		Value  any    `json:"value"`
	}{path, response.StatusCode, value}
	if err := json.NewEncoder(os.Stdout).Encode(line); err != nil {
		log.Fatal(err)
	}
}
