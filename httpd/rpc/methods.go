package rpc

import (
	"fmt"
	"io"
	"strconv"
	"time"

	"ledgerd/engine/figures"
	"ledgerd/httpd/promtext"
)

// method is what is answered from the ledger under a name.
type method struct {
	name          string
	most          int                                       // parameters that it takes
	answer        func(c *call, dst []byte) ([]byte, error) // appends the result
	latency       promtext.Histogram                        // of answers, errors included
	failed, asked promtext.Counter                          // of them errors; and what upstreams were asked instead
}

// newMethods returns the table of methods. The last one stands for all that are none.
func newMethods() []*method {
	return []*method{
		{name: "getAccountInfo", most: 2, answer: (*call).accountInfo},
		{name: "getMultipleAccounts", most: 2, answer: (*call).multipleAccounts},
		{name: "getBalance", most: 2, answer: (*call).balance},
		{name: "getProgramAccounts", most: 2, answer: (*call).programAccounts},

		{name: "getTokenAccountBalance", most: 2, answer: (*call).tokenBalance},
		{name: "getTokenSupply", most: 2, answer: (*call).tokenSupply},
		{name: "getTokenAccountsByOwner", most: 3, answer: (*call).tokensByOwner},
		{name: "getTokenAccountsByDelegate", most: 3, answer: (*call).tokensByDelegate},
		{name: "getTokenLargestAccounts", most: 2, answer: (*call).largestAccounts},

		{name: "getSlot", most: 1, answer: (*call).slotNow},
		{name: "getBlockHeight", most: 1, answer: (*call).blockHeight},
		{name: "getEpochInfo", most: 1, answer: (*call).epochInfo},
		{name: "getEpochSchedule", most: 0, answer: (*call).epochSchedule},
		{name: "getLatestBlockhash", most: 1, answer: (*call).latestBlockhash},
		{name: "isBlockhashValid", most: 2, answer: (*call).blockhashValid},
		{name: "getBlock", most: 2, answer: (*call).block},
		{name: "getBlockTime", most: 1, answer: (*call).blockTime},
		{name: "getBlocks", most: 3, answer: (*call).blocks},
		{name: "getBlocksWithLimit", most: 3, answer: (*call).blocksWithLimit},
		{name: "getFirstAvailableBlock", most: 0, answer: (*call).firstAvailableBlock},
		{name: "minimumLedgerSlot", most: 0, answer: (*call).firstAvailableBlock},

		{name: "getSignatureStatuses", most: 2, answer: (*call).signatureStatuses},
		{name: "getSignaturesForAddress", most: 2, answer: (*call).signaturesForAddress},

		{name: "getHealth", most: 0, answer: (*call).nodeHealth},
		{name: "getVersion", most: 0, answer: (*call).version},
		{name: "getGenesisHash", most: 0, answer: (*call).genesisHash},
		{name: "getIdentity", most: 0, answer: (*call).identity},
		{name: "other"},
	}
}

// writeMetrics writes the numbers of the door in the Prometheus text format.
func (d *Door) writeMetrics(w io.Writer) {
	failed, asked := make(map[string]uint64), make(map[string]uint64)
	figures.Head(w, "ledgerd_rpc_call_duration_seconds", "histogram", "Time that a call of JSON-RPC took to be answered by this node, by method.")
	for _, m := range d.methods {
		m.latency.Write(w, "ledgerd_rpc_call_duration_seconds", fmt.Sprintf("method=%q", m.name))
		failed[m.name], asked[m.name] = m.failed.Load(), m.asked.Load()
	}
	promtext.Each(w, "ledgerd_rpc_errors_total", "counter", "Calls of JSON-RPC that this node answered with an error, by method.", "method", failed)
	promtext.Each(w, "ledgerd_rpc_forwarded_total", "counter", "Calls of JSON-RPC that an upstream node was asked, by method.", "method", asked)
	lost, alone := make(map[string]uint64), make(map[string]uint64)
	for i, u := range d.upstreams {
		lost[strconv.Itoa(i+1)], alone[strconv.Itoa(i+1)] = u.failures.Load(), uint64(figures.One(u.isAlone(time.Now())))
	}
	promtext.Each(w, "ledgerd_rpc_upstream_failures_total", "counter", "Times that an upstream node of --rpc-forward gave no answer that can be passed on, by its place in the list.", "upstream", lost)
	promtext.Each(w, "ledgerd_rpc_upstream_avoided", "gauge", "1 while an upstream node is not asked because it failed, by its place in the list.", "upstream", alone)
	promtext.Value(w, "ledgerd_rpc_forward_lost_total", "counter", "Calls of JSON-RPC that no upstream node answered.", d.lost.Load())
}
