// Package datadir manages the data directory of a node: it identifies the node and its ledger, and begins a
// directory from an import or from the snapshot of another node, or sets its content aside.
//
// # Nouns
//
// A [Dir] is an open directory. The file node.json names the node and what the directory is bound to. The
// folders log, snapshots and history belong to packages wal and snapshot; a backup has no history. The folders log.behind and
// snapshots.behind have the content that was set aside. [Facts] are properties on which all nodes of one ledger
// must agree.
//
// # Rules
//
// A lock on the file LOCK gives the directory to one process at a time. A directory belongs to one ledger for ever:
// each Bind method binds a directory that is not yet bound, and refuses another ledger later.
//
// node.json is replaced atomically and has a checksum. It is durable before anything that
// depends on it is written, so a crash at any moment leaves a directory that [Open] accepts, completes,
// or refuses with an error that says what to do.
//
// Any goroutine may call the methods of a Dir. [Adopt], [Dir.SetAside] and [Dir.AbandonBootstrap] must not be
// called while the log or the snapshots of the directory are open.
package datadir
