// Package importer makes a data directory from an archive: the accounts of a whole ledger at one slot.
//
// # Nouns
//
// An [Import] takes account records, any number for an account and in any order, and sorts them on disk with package
// extsort. A [Point] is the slot of the archive's state. Import writes the newest record of each account into a snapshot,
// and one record into the log: the record that the snapshot is the state after. A node starts from both.
//
// # Rules
//
// One goroutine calls [Import.Add] and then [Import.Finish]; any goroutine may call [Import.Progress] meanwhile. Until
// Finish has returned nil, node.json marks the import as unfinished, and only another import opens the
// directory and removes the files of this one.
//
// The package reads no archive; package agave does, and the command connects the two.
package importer
