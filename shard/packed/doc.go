// Package packed holds the accounts of a ledger at one version, packed into records without pointers, but for those to account data.
//
// Nearly all accounts of a ledger are here, and most are rarely written. So a [Base] stores
// each as records of fixed size, which take little memory and which the garbage collector does not
// scan:
//
//   - a record for every account, 56 bytes: key, lamports, provenance, flags
//   - a holding for every token account, 48 bytes more: wallet, amount, mint
//   - a datum for every account with data, 16 bytes more: the data, which the account's writes and updates share
//   - an extra for the fields that few accounts set, and a delegation for those that few holdings set
//   - the keys of programs and mints, each stored once ([arena.Keys])
//
// Packing loses nothing: an account is unpacked as it was put. B-trees of tidwall/btree list the records: by
// key, by program, by wallet, by delegate, which few token accounts have, and, if [New] says so, by mint. A reader gets a
// ledger.Account that is unpacked for it, so the answer does not change when the record is overwritten.
//
// # Ownership and reclamation
//
// A Base has one owner at a time, and only the owner calls its methods. Another goroutine may read a [Frozen] copy
// meanwhile. The copy shares the records and the nodes of the tree, and the base copies a shared node before it writes
// to it. A change of an account overwrites its record, which leaves the trees alone, unless a frozen copy may read
// the record. Then the account gets a new record, and the old one is retired, and reclaimed when the last such copy
// is released.
package packed
