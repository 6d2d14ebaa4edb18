package load

import (
	"context"
	"errors"
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
	Programs   []string // that own accounts
	Signatures []string // of transactions
	Slot       uint64   // of the newest block
}

// endpoints are what a mix can name.
var endpoints = map[string]func(k *Known, r *rand.Rand) string{
	"account": func(k *Known, r *rand.Rand) string { return "/account/" + pick(k.Keys, r) },
	"balance": func(k *Known, r *rand.Rand) string { return "/account/" + pick(k.Keys, r) + "/balance" },
	"tokens":  func(k *Known, r *rand.Rand) string { return "/account/" + pick(k.Keys, r) + "/tokens" },
	"batch": func(k *Known, r *rand.Rand) string {
		keys := make([]string, batchKeys)
		for i := range keys {
			keys[i] = pick(k.Keys, r)
		}
		return "/accounts?keys=" + strings.Join(keys, ",")
	},
	"program":     func(k *Known, r *rand.Rand) string { return "/accounts/program/" + pick(k.Programs, r) + "?limit=100" },
	"transaction": func(k *Known, r *rand.Rand) string { return "/transaction/" + pick(k.Signatures, r) },
	"recent":      func(*Known, *rand.Rand) string { return "/transactions/recent" },
	"block":       func(k *Known, _ *rand.Rand) string { return fmt.Sprintf("/blocks/%d", k.Slot) },
	"latest":      func(*Known, *rand.Rand) string { return "/blocks/latest" },
}

func pick(list []string, r *rand.Rand) string { return list[r.IntN(len(list))] }

// Mix is endpoints by weight.
type Mix map[string]int

// ParseMix reads NAME=WEIGHT,….
func ParseMix(text string) (Mix, error) {
	m := Mix{}
	for part := range strings.SplitSeq(text, ",") {
		name, weight, _ := strings.Cut(part, "=")
		n, err := strconv.Atoi(weight)
		if endpoints[name] == nil || err != nil || n < 1 || n > 1_000_000 {
			return nil, fmt.Errorf("%q is not NAME=WEIGHT with a name of %s", part, strings.Join(slices.Sorted(maps.Keys(endpoints)), ", "))
		}
		m[name] = n
	}
	return m, nil
}

// Paths returns that many paths of the mix, the same ones every time.
func (m Mix) Paths(k *Known, count int) ([]string, error) {
	var names []string
	sum := 0
	for _, name := range slices.Sorted(maps.Keys(m)) {
		sum += m[name]
		names = append(names, name)
		switch {
		case name == "program" && len(k.Programs) == 0, name == "transaction" && len(k.Signatures) == 0, name == "block" && k.Slot == 0:
			return nil, fmt.Errorf("the server tells of no %s to ask for", name)
		case slices.Contains([]string{"account", "balance", "tokens", "batch"}, name) && len(k.Keys) == 0:
			return nil, errors.New("the server tells of no account to ask for: name some with --keys")
		}
	}
	random := rand.New(rand.NewPCG(1, 1))
	paths := make([]string, count)
	for i := range paths {
		at, chosen := random.IntN(sum), 0
		for ; at >= m[names[chosen]]; chosen++ {
			at -= m[names[chosen]]
		}
		paths[i] = endpoints[names[chosen]](k, random)
	}
	return paths, nil
}

// wellKnown are programs that own accounts on most ledgers: of tokens, and of wallets.
var wellKnown = []string{ledger.TokenProgram.String(), "11111111111111111111111111111111"}

// Learn asks the node what there is to ask for, with four to nine requests: for the newest block, for
// transactions, for the accounts that those name, and for a list of what a program owns, the owners of those
// accounts first. Keys that are known already stay as they are.
func (n *Node) Learn(ctx context.Context, k *Known) error {
	var latest struct{ Slot uint64 }
	var recent struct {
		Transactions []struct {
			Signature string
			Accounts  []string
		}
	}
	var named struct{ Accounts []*struct{ Owner string } }
	err := n.Get(ctx, "/blocks/latest", &latest)
	if err == nil {
		err = n.Get(ctx, "/transactions/recent?limit=100", &recent)
	}
	k.Slot = latest.Slot
	var keys, owners []string
	for _, t := range recent.Transactions {
		k.Signatures = append(k.Signatures, t.Signature)
		keys = append(keys, t.Accounts...)
	}
	if err == nil && len(keys) > 0 {
		err = n.Get(ctx, "/accounts?keys="+strings.Join(keys[:min(len(keys), 100)], ","), &named)
	}
	for _, a := range named.Accounts {
		if a != nil && a.Owner != "" && len(owners) < 4 && !slices.Contains(owners, a.Owner) {
			owners = append(owners, a.Owner)
		}
	}
	known := len(k.Keys) > 0
	for _, id := range append(owners, wellKnown...) {
		if err != nil || len(k.Programs) > 0 {
			break
		}
		var list struct{ Accounts []struct{ Pubkey string } }
		if err = n.Get(ctx, "/accounts/program/"+id+"?limit=1000", &list); len(list.Accounts) > 0 {
			k.Programs = []string{id}
		}
		for _, a := range list.Accounts {
			if !known {
				k.Keys = append(k.Keys, a.Pubkey)
			}
		}
	}
	return err
}

// Learns reports whether a mix asks for more than is known.
func (m Mix) Learns(k *Known) bool {
	for name := range m {
		switch name {
		case "latest", "recent":
		case "account", "balance", "tokens", "batch":
			if len(k.Keys) == 0 {
				return true
			}
		default:
			return true
		}
	}
	return false
}
