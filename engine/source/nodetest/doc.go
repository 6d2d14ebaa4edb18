// Package nodetest is a node to test against: it speaks Yellowstone gRPC and JSON-RPC as a
// validator's node does, over real sockets or in memory, and injects the faults that a test commands.
// It encodes what it says by itself, so that no decoder is tested
// against its own twin. It knows the requests that ledgerd's sources make, and refuses all others.
//
// # Nouns
//
// A [Ledger] is what happened: a tree of blocks with the writes of each, made by the simulator, of which some are dead or made
// twice, with a few [Turn]s: deep forks and long runs of skipped slots. A [Node] tells it, one slot
// with each [Node.Advance]: at any moment it has played some slots and knows of nothing later. A
// [Fault] is one thing that goes wrong, injected now; a [Schedule] is a list of them by slot, drawn
// from a seed. Tests of one source tell of a few blocks without a Ledger: by updates that a script sends ([NewStreamServer]), and by
// a [Chain] of which [Call.Answer] tells.
//
// # What the node says
//
// The stream shows every block of the tree as its slot comes: statuses, account writes with
// growing write versions, transactions and block meta in an order that varies within what validators
// do, and later what each slot came to. It begins anywhere in a slot, and replays frozen blocks alone, as Yellowstone's plugin does
// since version 15.1. A main block is confirmed two slots after its own and final as
// many after it as the ledger says; a block of a fork never is. JSON-RPC knows confirmed and finalized
// blocks only, and the accounts as they stand at those.
//
// # What shows that
//
// The stream is that of Yellowstone's plugin, since version 15.1 (rpcpool/yellowstone-grpc, yellowstone-grpc-geyser/src):
//   - It begins with a ping (grpc.rs, subscribe), and pings each ten seconds.
//   - What is told before the filters are known is dropped (grpc.rs, client_loop: the filter of a new session passes nothing).
//   - A request with from_slot, also a later one on the same call, is answered by what is kept before anything new (client_loop). Kept
//     are frozen blocks with their newest writes, without the statuses of their begin (block_reconstruction.rs).
//   - A server that keeps nothing, or nothing yet of that slot and later ones, ends the call with INTERNAL (block_reconstruction_loop answers nothing then), and
//     one that does not reach so far back with OUT_OF_RANGE (client_loop).
//   - A client that does not keep up is left with INTERNAL (client_loop).
//   - Who asks for all accounts or transactions may be refused (plugin/filter/limits.rs, check_any). Transactions but for votes are not all
//     (plugin/filter/filter.rs, FilterTransactions).
//   - A write passes by its key (plugin/filter/filter.rs, FilterAccounts). It would by the owner after it, never by the one before: so who asks
//     for the accounts of a program does not learn that one left it, and no source of ours asks so.
//
// JSON-RPC is that of Agave (anza-xyz/agave): the codes of errors (rpc-client-api/src/custom_error.rs), how many accounts a call
// may ask for (rpc-client-api/src/request.rs), that blocks are confirmed at least, and what minContextSlot refuses (rpc/src/rpc.rs).
//
// # Order and ownership
//
// The node's goroutines belong to the node: Start begins them and Close waits for them.
// Advance and Inject may be called from any goroutine; what was played is never changed,
// so every subscriber reads the same log at a pace of its own.
// Everything that looks random is drawn from the seeds given.
package nodetest
