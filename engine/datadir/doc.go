// Package datadir is the data directory of a node: which node and which ledger it belongs to, and how it
// is begun with an import, begun with the snapshot of another node, or emptied.
//
// # Nouns
//
// A [Dir] is an open directory. The file node.json names the node and what the directory is bound to; the
// folders log and snapshots belong to packages wal and snapshot; the folders log.behind and
// snapshots.behind hold what was set aside. [Facts] are what the nodes of one ledger have to agree on.
//
// # Rules
//
// A directory belongs to one process at a time, by the lock on the file LOCK, and to one ledger for ever:
// each Bind method binds a directory that is not bound yet, and refuses another ledger later.
//
// node.json is replaced as a whole and carries a checksum. What it says is durable before anything that
// depends on it is written, so a crash at any moment leaves a directory that [Open] accepts, completes,
// or refuses with what is to be done.
//
// The methods of a Dir may be called from any goroutine, but [Adopt], [Dir.SetAside] and
// [Dir.AbandonBootstrap] need a directory whose log and snapshots nobody has open.
package datadir
