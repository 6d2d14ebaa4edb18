package load

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"ledgerd/engine/ledger"
)

// batchKeys is how many accounts a request of a batch asks for.
const batchKeys = 20

// Known is what can be asked for.
type Known struct {
	Keys       []string // accounts
	Program    string   // that owns accounts
	Signatures []string // of transactions
	Slot       uint64   // of the newest block
}

// endpoint is what a mix can name: a path of something that is known.
type endpoint struct {
	known func(k *Known) bool
	path  func(k *Known, r *rand.Rand) string
}

var (
	always     = func(*Known) bool { return true }
	keys       = func(k *Known) bool { return len(k.Keys) > 0 }
	program    = func(k *Known) bool { return k.Program != "" }
	signatures = func(k *Known) bool { return len(k.Signatures) > 0 }
	slot       = func(k *Known) bool { return k.Slot > 0 }
)

var endpoints = map[string]endpoint{
	"account": {keys, func(k *Known, r *rand.Rand) string { return "/account/" + pick(k.Keys, r) }},
	"balance": {keys, func(k *Known, r *rand.Rand) string { return "/account/" + pick(k.Keys, r) + "/balance" }},
	"tokens":  {keys, func(k *Known, r *rand.Rand) string { return "/account/" + pick(k.Keys, r) + "/tokens" }},
	"batch": {keys, func(k *Known, r *rand.Rand) string {
		batch := make([]string, batchKeys)
		for i := range batch {
			batch[i] = pick(k.Keys, r)
		}
		return "/accounts?keys=" + strings.Join(batch, ",")
	}},
	"program":     {program, func(k *Known, _ *rand.Rand) string { return "/accounts/program/" + k.Program + "?limit=100" }},
	"transaction": {signatures, func(k *Known, r *rand.Rand) string { return "/transaction/" + pick(k.Signatures, r) }},
	"recent":      {always, func(*Known, *rand.Rand) string { return "/transactions/recent" }},
	"block":       {slot, func(k *Known, _ *rand.Rand) string { return fmt.Sprintf("/blocks/%d", k.Slot) }},
	"latest":      {always, func(*Known, *rand.Rand) string { return "/blocks/latest" }},
}

func pick(list []string, r *rand.Rand) string { return list[r.IntN(len(list))] }

// Mix is the names of endpoints, each as often as its weight.
type Mix []string

// ParseMix reads NAME=WEIGHT,….
func ParseMix(text string) (m Mix, err error) {
	for part := range strings.SplitSeq(text, ",") {
		name, weight, _ := strings.Cut(part, "=")
		n, err := strconv.Atoi(weight)
		if endpoints[name].path == nil || err != nil || n < 1 || n > 1000 {
			return nil, fmt.Errorf("%q is not NAME=WEIGHT with a weight of 1 to 1,000 and a name of %s", part, strings.Join(slices.Sorted(maps.Keys(endpoints)), ", "))
		}
		m = append(m, slices.Repeat([]string{name}, n)...)
	}
	return m, nil
}

// Unknown returns an endpoint of the mix that there is nothing known to ask for, "" if there is none.
func (m Mix) Unknown(k *Known) string {
	for _, name := range m {
		if !endpoints[name].known(k) {
			return name
		}
	}
	return ""
}

// Paths returns that many paths of the mix, of which nothing is unknown. They are the same ones every time.
func (m Mix) Paths(k *Known, count int) []string {
	random := rand.New(rand.NewPCG(1, 1))
	paths := make([]string, count)
	for i := range paths {
		paths[i] = endpoints[pick(m, random)].path(k, random)
	}
	return paths
}

// wellKnown are programs that own accounts on most ledgers: of tokens, and of wallets.
var wellKnown = []string{ledger.TokenProgram.String(), "11111111111111111111111111111111"}

// Learn asks the node what there is to ask for, with three or four requests: for the newest block, for
// transactions, and for a list of what a well-known program owns. Keys that are known already stay; where there
// is no such list they are those that transactions name.
func (n *Node) Learn(ctx context.Context, k *Known) error {
	var latest struct{ Slot uint64 }
	var recent struct {
		Transactions []struct {
			Signature string
			Accounts  []string
		}
	}
	err := n.Get(ctx, "/blocks/latest", &latest)
	if err == nil {
		err = n.Get(ctx, "/transactions/recent?limit=100", &recent)
	}
	k.Slot = latest.Slot
	var listed, named []string
	for i := 0; err == nil && k.Program == "" && i < len(wellKnown); i++ {
		var list struct{ Accounts []struct{ Pubkey string } }
		if err = n.Get(ctx, "/accounts/program/"+wellKnown[i]+"?limit=1000", &list); len(list.Accounts) > 0 {
			k.Program = wellKnown[i]
		}
		for _, a := range list.Accounts {
			listed = append(listed, a.Pubkey)
		}
	}
	for _, t := range recent.Transactions {
		k.Signatures = append(k.Signatures, t.Signature)
		named = append(named, t.Accounts...)
	}
	for _, keys := range [][]string{listed, named} {
		if len(k.Keys) == 0 {
			k.Keys = keys
		}
	}
	return err
}
