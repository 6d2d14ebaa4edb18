// Package sim is a source that makes its own ledger: a small, complete one in which
// nothing is ever created or lost. Wallets send lamports, holdings of both SPL token
// programs open, trade and close, validators vote and earn the fees, leaders miss their
// slots and short branches are abandoned. Every balance of every block adds up.
//
// # Nouns
//
// The [Source] holds parameters only; each Run makes a world of its own. The layout says
// which accounts there can be and gives each a position and a key. The world holds one
// cell of state per position. The schedule says what happens in a slot: a block, none,
// or a block of a branch that will be abandoned. The producer turns a world, a slot and a
// parent into a block, and leaves the world as it stands after it. The chain walks
// the slots and reports which blocks were confirmed and finalized.
//
// # Determinism
//
// What happens in a slot is a function of the seed, the slot and the state of the world, and
// the world is a function of the accounts a client can see: nothing depends on the way it
// got there. So a world rebuilt from the accounts at the newest finalized block makes the
// same blocks, byte for byte, as one that never stopped. No map is iterated, no
// float decides anything, and the random numbers are those of a PCG fixed by its
// definition, so the same holds from machine to machine.
//
// # The ledger
//
// Base state stands at slot 0; the first block is slot 1, its parent slot 0, its height 1.
// A block carries the payments due since its parent, so skipped slots delay
// payments and lose none. Fees, 5000 lamports for each signature, go whole to the
// leader, who leads four slots in a row. A failed transaction changes nothing but the fee.
//
// Wallets are never emptied: one that runs low is paid by the leader before it
// pays again. Only holdings and mints open and close. Each mint's first holding belongs to
// its issuer and never closes; collectibles are mints of one token that live, pass from
// owner to owner and vanish. The supply of a mint is the sum of its holdings, but for
// wrapped lamports, whose mint counts no supply, as on the real ledger: there each holding
// holds its amount in lamports, above its rent.
//
// With pools=N there are markets of two mints, and a quarter of the payments are swaps: the lamports of a pool never move, its
// data tells its reserves. Where the node holds data, holdings and mints tell it too, in the layout of the token programs.
//
// A branch is one to three blocks deep, without skipped slots, and the block after it
// builds on the block before it. The branch's blocks are never confirmed and never declared
// dead. A block is confirmed two slots after its own, and finalized as many
// after it as the parameters say; a run of N slots emits exactly what an endless one
// emits up to slot N.
package sim
