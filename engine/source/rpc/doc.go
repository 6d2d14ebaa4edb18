// Package rpc follows a node over its JSON-RPC 2.0: the source "rpc:URL". It also fills gaps of another
// source and fetches single accounts.
//
// # Nouns
//
// A client asks one node. A follower goes along the chain: it lists slots, fetches their blocks
// several at once, and emits them in the order of the chain. A learner finds out what blocks do not
// show of the accounts that they touch.
//
// # Order, skips and gaps
//
// The list of slots (getBlocksWithLimit) is a hint. A block is emitted when it builds, by slot and hash, on
// the one emitted before, and on nothing else; where it does not name its parent's hash the node is asked
// for that. A slot is skipped if a later block proves it by its parent link. A block that a child names as
// its parent but that cannot be had is missing: it is asked for again and again, at growing intervals; the
// figures tell the gap, and nothing is emitted past it. The errors -32007, -32009, -32004 and a null prove
// neither. That no answer came, or that a list failed, is no gap: if it lasts, health is told why nothing comes.
//
// A node that does not keep what comes next lists what it keeps. What is between is missing, and told as out of range; nothing
// comes until the node has it again. Who fills a gap knows the block at its end, and where the list is empty asks for that one: its
// parents tell what is before it.
//
// What getSlot says is never more than a hint: the figures tell it, and who holds nothing begins a little below it. Where it is
// below what is held here, the node is behind or its ledger began again, which it shows when it has come so far.
//
// Blocks come confirmed. One is final once getSlot is past it at level finalized and getBlock tells its
// hash there. A node never takes a confirmed block back; if it does all the same (a
// balancer in front of nodes that disagree), the follower goes back to the newest final block and emits what the node shows after
// that. Where the node has another block in the place of that one, the figures tell it, and the follower waits: nothing is emitted.
//
// # What is exact
//
// Blocks show the lamports of all accounts that they touch and the amounts of token accounts: these
// are exact at each slot. Owner, executable, rent epoch, delegates, supplies and other token facts are
// asked for (getMultipleAccounts) when the newest block has come, before it is emitted: of
// accounts that are not known, and of token accounts and mints whenever a block touches them. An answer
// stands at the slot it names. At the block's own slot it becomes part of a block that touched the account; else it is
// base state, which the sequencer keeps until the chain has reached its slot. So no answer is ever shown at a slot before its own. That
// an account does not exist is believed to blocks alone.
//
// Until the answer is there an account is partial, or shows what it had before: during catching up, when
// only the newest block asks; when the node limits the rate; when the answer takes more than 2 seconds.
// What is asked for is remembered in bounded memory; of more than 262144 accounts that wait, some
// are left until a block touches them again. Once 262144 accounts are known, and every five minutes, they are forgotten together: an owner
// that changes while the account lives on is learned when it is touched after that.
//
// # Rate limiting
//
// New blocks are looked for each 400 ms.
// At most so many calls are under way at once, one connection each. After a 429 no call begins until
// Retry-After has passed, or for a time that doubles each time. Failures are tried again with growing
// pauses drawn at random. Every answer is bounded in size, elements and time, and one large answer is read at once.
//
// Neither the address of the node nor headers, which may hold keys, nor any text that came from the node is ever
// shown.
package rpc
