// Package file reads recorded ledgers: blocks as a node answers getBlock, accounts as a
// node answers getAccountInfo, our own event lines, binary event files, and recorded validator
// streams, compressed or not. What a file holds is told from its content, never from its name.
//
// # Nouns
//
// An input is one path of the specification, or one file of a folder. Its content is
// unpacked and recognized; a reader for that form turns it into events; the sink hands
// them to the sequencer.
//
// # Order
//
// Inputs are read one after the other, in the order given, a folder in name order. The
// events of one input come in the order of the file. After the first error nothing more
// is emitted; what was emitted before it stands.
//
// # Event lines
//
// Our own NDJSON says one event a line, and AppendEventLine writes what a reader takes:
//
//	{"type":"block","slot":N,"parent_slot":N,"blockhash":"...","previous_blockhash":"...",
//	 "block_time":N,"block_height":N,"commitment":"finalized","transaction_count":N,
//	 "transactions":[{"signature":"...","success":false,"fee":N,"err":ANY,"accounts":["..."]}],
//	 "accounts":[account, ...]}
//	{"type":"accounts","slot":N,"accounts":[account, ...]}
//	{"type":"slot","slot":N,"status":"confirmed|finalized|dead","blockhash":"..."}
//
//	account  {"pubkey":"...","lamports":N,"owner":"...","executable":false,"rent_epoch":N,
//	          and "data":"<base64>", or "token":token and "mint":mint; of a block "read_only":true}
//	token    {"mint":"...","owner":"...","amount":"N","state":"initialized|frozen|uninitialized",
//	          "delegate":"...","delegated_amount":"N","close_authority":"...","is_native":false}
//	mint     {"decimals":N,"supply":"N","scaled":false}
//
// What is absent or null is unknown, and other fields are not read. These are checked in every line, also where they mean
// nothing.
// "token":false and "mint":false say that the account is known to be none. A token without
// a state is a balance: delegate and close authority are unknown then, and none where a
// state stands beside their null. One without an owner is a balance of the years that did not
// record the wallet. An account with a mint but without lamports teaches the mint's facts
// alone. Fields may come in any order, and none of them twice. Names are told apart by case. What is not
// JSON in UTF-8 is refused, and so is a line of more than 64 MiB; reading the longest takes less than
// a GiB of memory.
//
// "read_only":true says that the block only read the account: where it is held with these lamports nothing has changed, also its data, which every other
// account without "data" or "bytes" makes unknown.
//
// "err" is what a failed transaction failed with, any JSON of at most 1 KiB; a longer one is not kept.
//
// "commitment" is what the source claims of the block as it arrives, processed if
// absent; "transaction_count" stands where not all transactions are listed.
//
// # Resuming
//
// Run starts at the front of the input again. Blocks below the resume point are read and
// left out; the one at it is emitted, so that the sequencer can see whether the input is
// the ledger it holds. Left out too is the base state in front of the first block at or
// past the resume point: it was ingested before that block, and a second time it could
// fill in what the blocks have made unknown since.
//
// Statuses of slots up to the resume point are left out: a block that was called dead or
// confirmed there may have lost or won its slot since. In the place of the first one a status says that the resume
// point is final, so that the sequencer learns that the input has statuses. Statuses of later slots that do not
// name a block name it now, if the input has shown only one, not more than 4096 slots ago.
//
// An input that begins below the resume point shows the block there, if it is of the same ledger. Where it shows another one, or
// passes over that slot, what builds on that and does not say on which block says so now, or it would be placed on what is held; and if
// the block never comes, Run ends with an error.
//
// An input of which everything is held already ends quietly, and what follows in further
// inputs is new. New files are named after the old ones: alone, they lose the base state in
// front of their first block, with a warning.
package file
