// Package ledger holds what every other package talks about: the blocks,
// transactions and accounts of a Solana-like ledger, the events a source emits
// and the records a sequencer makes of them.
//
// # Nouns
//
// An [Event] is what a source saw: base state (accounts without a block), a
// [Block], or a [SlotStatus]. Events carry writes, which know only some fields.
//
// A [Record] is what the sequencer decided: the event, put at a [Version] (its
// position in the log), with the [Update]s it caused. Updates carry whole accounts.
//
// A [Head] is what is visible: one [Tip] for each [Commitment].
//
// # Ownership
//
// Everything here is immutable once it was handed over: an event after it was
// emitted, a record after it was appended, a head after it was published. So all of
// it may be shared between goroutines and nothing of it is ever copied for safety.
//
// The package opens nothing, starts no goroutine and imports only engine/base58 and the standard library.
package ledger
