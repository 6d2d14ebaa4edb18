// Package packed holds the accounts of a ledger at one version, packed into records without pointers.
//
// Nearly all accounts of a ledger are here, and most of them are not written for a long time. So a [Base] keeps
// each as one record of fixed size, which takes little memory and leaves the garbage collector nothing to
// scan:
//
//   - a record for every account, 56 bytes: key, lamports, provenance, flags
//   - a holding for every token account, 48 bytes more: wallet, amount, mint
//   - an extra for what few accounts have, and a delegation for what few holdings have:
//     whatever a ledger.Account can say comes out of its record as it went in
//   - the keys of programs and mints once each ([arena.Keys])
//
// Three trees list the records: by key, by program, by wallet. A reader gets a ledger.Account that is
// unpacked for it, so its answer stays true whatever becomes of the record.
//
// # Ownership and reclamation
//
// A Base has one owner at a time, who alone calls its methods. A [Frozen] copy of it is read by another
// goroutine meanwhile: it shares the nodes of the tree, which the base from then on copies before it writes to them,
// and the records. A record is overwritten where its account changes, which leaves the trees alone. A record that a
// frozen copy may read is retired instead, and reclaimed once no such copy is left.
package packed
