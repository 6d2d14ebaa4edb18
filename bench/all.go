package bench

import "slices"

// FullAccounts are how many accounts the goals for memory are for.
const FullAccounts = 10_000_000

// All returns every scenario there is, in the order in which they are run: with that many accounts
// where a ledger is held and recovered.
func All(accounts int) []Scenario {
	return slices.Concat(REST(RESTOptions{}), Mixed(RESTOptions{}), WebSocket(), Ingest(), Recover(accounts), Memory(accounts), Cluster())
}
