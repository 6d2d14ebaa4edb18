package bench

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/netip"
	"regexp"
	"slices"
	"strings"

	"github.com/valyala/fasthttp"

	"ledgerd/bench/feed"
	"ledgerd/bench/load"
	"ledgerd/bench/peer"
)

const (
	rpcData    = 168 // bytes of each account: those of a token account, as whole words
	rpcHundred = 100
)

// rpcAddress finds where JSON-RPC is spoken in what ledgerd prints once it listens.
var rpcAddress = regexp.MustCompile(`JSON-RPC +http://(\S+)/`)

// runRPC asks ledgerd for one account a call and for a hundred, and beside it one that answers each call for one with the same bytes. The answer about a hundred
// is not to be compressed, which takes longer than all else.
func runRPC(ctx context.Context, r *Run) {
	r.Note(clientNote)
	accounts := max(rpcHundred, r.Scaled(restAccounts))
	g := startRig(ctx, r, feed.Config{Accounts: accounts, Data: rpcData}, slices.Concat(restLimits, []string{"--data", "all", "--rpc-listen", "127.0.0.1:0"})...)
	said := got(g.Await(ctx, rpcAddress))
	own := load.Config{Address: netip.MustParseAddrPort(said[1])}
	pids := func() []int { return []int{g.Pid()} }
	ask := func(host string) func(int) []byte {
		return func(index int) []byte {
			return load.Post(host, "/", nil, rpcCall("getAccountInfo", `"`+keyOf(index)+`"`))
		}
	}
	subjects := []*restSubject{
		{name: "one", of: accounts, load: own, pids: pids, ask: ask(said[1]), verify: g.verifyData(1)},
		{name: "hundred", of: accounts, load: own, pids: pids, verify: g.verifyData(rpcHundred), accounts: rpcHundred, ask: func(index int) []byte {
			keys := make([]string, rpcHundred)
			for i := range keys {
				keys[i] = `"` + keyOf((index+i)%accounts) + `"`
			}
			return load.Post(said[1], "/", http.Header{"Accept-Encoding": {"identity"}}, rpcCall("getMultipleAccounts", "["+strings.Join(keys, ",")+"]"))
		}},
	}
	if r.Peers {
		// One that answers every call as ledgerd answers one for the first account.
		answer := askFor(ctx, http.MethodPost, "http://"+said[1]+"/", rpcCall("getAccountInfo", `"`+keyOf(0)+`"`))
		bare := got(startPeer(ctx, r, &peer.RESTPeers[0], peer.Config{Answer: answer}))
		subjects = append(subjects, &restSubject{
			name: "bare", of: accounts, load: load.Config{Address: bare.Address}, pids: bare.Pids, ask: ask(bare.Address.String()),
			verify: func(_ int, response *fasthttp.Response) error { return g.verifyData(1)(0, response) },
		})
	}
	turns(r, subjects, func(s *restSubject) { s.round(ctx, r) })
}

// rpcCall returns the body of a call for accounts.
func rpcCall(method, keys string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":[%s,{"commitment":"processed","encoding":"base64"}]}`, method, keys)
}

// verifyData returns what says what is wrong with an answer: it has not the data of so many accounts from an index on.
func (g *rig) verifyData(count int) func(int, *fasthttp.Response) error {
	return func(index int, response *fasthttp.Response) error {
		rest := string(response.Body())
		for i := range count {
			c := g.feed.Config()
			data := c.Account((index+i)%c.Accounts, feed.FirstSlot-1).Data.Bytes()
			var found bool
			if _, rest, found = strings.Cut(rest, `"data":["`+base64.StdEncoding.EncodeToString(data)+`","base64"]`); !found {
				return fmt.Errorf("account %d is not where it should be in %.500q", index+i, response.Body())
			}
		}
		return nil
	}
}
