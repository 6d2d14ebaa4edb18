// Package importer makes a data directory from an archive: the accounts of a whole ledger at one slot.
//
// # Nouns
//
// An [Import] takes account records, several of an account in any order, and sorts them on disk with package
// extsort. A [Point] says at which slot they stand. The newest record of each account goes into a snapshot,
// and the log gets one record, that the snapshot is the state after; a node starts from both.
//
// # Rules
//
// One goroutine calls [Import.Add] and then [Import.Finish]; any may call [Import.Progress] meanwhile. Until
// Finish has returned nil, node.json says that the import did not finish, and only another import opens the
// directory: it removes what this one left.
//
// The package reads no archive: package agave does, and the command introduces the two.
package importer
