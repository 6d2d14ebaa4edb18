package load

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"ledgerd/engine/ledger"
	"ledgerd/httpd/client"
)

// Known is what can be asked for: keys of accounts, programs, signatures and slots, under these words.
type Known map[string][]string

// endpoint is what a mix can name: paths in which names of so many things stand for the asterisk.
type endpoint struct {
	of    string
	count int
	path  string
}

var endpoints = map[string]endpoint{
	"account":     {"keys", 1, "/account/*"},
	"balance":     {"keys", 1, "/account/*/balance"},
	"tokens":      {"keys", 1, "/account/*/tokens"},
	"batch":       {"keys", 20, "/accounts?keys=*"},
	"program":     {"programs", 1, "/accounts/program/*?limit=100"},
	"transaction": {"signatures", 1, "/transaction/*"},
	"recent":      {"", 0, "/transactions/recent"},
	"block":       {"slots", 1, "/blocks/*"},
	"latest":      {"", 0, "/blocks/latest"},
}

// Mix is the names of endpoints, each as often as its weight.
type Mix []string

// ParseMix reads NAME=WEIGHT,….
func ParseMix(text string) (m Mix, err error) {
	for part := range strings.SplitSeq(text, ",") {
		name, weight, _ := strings.Cut(part, "=")
		n, err := strconv.Atoi(weight)
		if endpoints[name].path == "" || err != nil || n < 1 || n > 1000 {
			return nil, fmt.Errorf("%q is not NAME=WEIGHT with a weight of 1 to 1,000 and a name of %s", part, strings.Join(slices.Sorted(maps.Keys(endpoints)), ", "))
		}
		m = append(m, slices.Repeat([]string{name}, n)...)
	}
	return m, nil
}

// Unknown returns an endpoint of the mix that there is nothing known to ask for, "" if there is none.
func (m Mix) Unknown(k Known) string {
	for _, name := range m {
		if e := endpoints[name]; e.count > 0 && len(k[e.of]) == 0 {
			return name
		}
	}
	return ""
}

// Paths returns that many paths of the mix, of which nothing is unknown. They are the same ones every time.
func (m Mix) Paths(k Known, count int) []string {
	random := rand.New(rand.NewPCG(1, 1))
	paths := make([]string, count)
	for i := range paths {
		e := endpoints[m[random.IntN(len(m))]]
		names := make([]string, e.count)
		for j := range names {
			names[j] = url.PathEscape(k[e.of][random.IntN(len(k[e.of]))]) // a server may have told anything
		}
		paths[i] = strings.Replace(e.path, "*", strings.Join(names, ","), 1)
	}
	return paths
}

// wellKnown are programs that own accounts on most ledgers: of tokens, and of wallets.
var wellKnown = []string{ledger.TokenProgram.String(), "11111111111111111111111111111111"}

// Learn asks the node what there is to ask for, with three or four requests: for the newest block, for
// transactions, and for a list of what a well-known program owns. Keys that are known already stay; where there
// is no such list they are those that transactions name.
func (k Known) Learn(ctx context.Context, node *client.Client) error {
	latest, err := node.LatestBlock(ctx, client.Read{})
	var recent client.Answer[client.RecentTransactions]
	if err = unlessAbsent(err); err == nil {
		recent, err = node.Recent(ctx, client.RecentPage{Limit: 100}, client.Read{})
	}
	if latest.Value.Slot > 0 {
		k["slots"] = []string{strconv.FormatUint(latest.Value.Slot, 10)}
	}
	var listed, named []string
	for i := 0; err == nil && len(listed) == 0 && i < len(wellKnown); i++ {
		var list client.Answer[client.ProgramAccounts]
		list, err = node.Program(ctx, wellKnown[i], client.Page{Limit: 1000}, client.Read{})
		err = unlessAbsent(err)
		for _, a := range list.Value.Accounts {
			k["programs"] = wellKnown[i : i+1]
			listed = append(listed, a.Pubkey)
		}
	}
	for _, t := range recent.Value.Transactions {
		k["signatures"] = append(k["signatures"], t.Signature)
		named = append(named, t.Accounts...)
	}
	for _, keys := range [][]string{listed, named} {
		if len(k["keys"]) == 0 {
			k["keys"] = keys
		}
	}
	return err
}

// unlessAbsent returns the error of a call, but for one that says that the node has no such thing.
func unlessAbsent(err error) error {
	if refused, ok := errors.AsType[*client.StatusError](err); ok && refused.Status == http.StatusNotFound {
		return nil
	}
	return err
}
