// Calls a node with the libraries of Solana as they are, and compares what they read with what REST says at the same slot.
// Arguments: the address of JSON-RPC, that of REST, a wallet with tokens, a mint, and whether the node keeps the data of accounts. It stands still.
import assert from 'node:assert/strict';
import { Connection, PublicKey } from '@solana/web3.js';
import { getAccount, getMint, getMultipleAccounts } from '@solana/spl-token';
import { address, createSolanaRpc, signature } from '@solana/kit';

const [url, rest, wallet, mint, data] = process.argv.slice(2);
const keepsData = data === 'all';
const genesis = '5eykt4UsFv8P8NJdTREpY1vzqKqZKvdpKuc147dw2N9d'; // --genesis-hash of the node
const levels = ['processed', 'confirmed', 'finalized'];
const tokenProgram = 'TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA';

async function ask(path) {
  return (await fetch(rest + path)).json();
}
const account = await ask(`/account/${wallet}?commitment=finalized`);
const tokens = (await ask(`/account/${wallet}/tokens?commitment=finalized`)).tokens.filter((t) => t.program_id === tokenProgram);
const supply = (await ask(`/account/${mint}?include=token&commitment=finalized`)).mint;
const tip = {};
for (const level of levels) tip[level] = await ask(`/blocks/latest?commitment=${level}`);
const block = await ask(`/blocks/${tip.finalized.slot}?include=signatures`);
const history = (await ask(`/account/${wallet}/transactions?commitment=finalized&limit=5`)).transactions;
assert(tokens.length > 0 && history.length > 0 && tip.processed.slot > tip.finalized.slot);

// refused runs a call that must be answered with an error of a code.
async function refused(code, call) {
  await assert.rejects(call, (e) => (e.code ?? e.context?.__code) === code || assert.fail(e));
}

async function web3() {
  const c = new Connection(url, 'finalized');
  const key = new PublicKey(wallet);
  for (const level of levels) {
    assert.equal(await c.getSlot(level), tip[level].slot);
    const { value, context } = await c.getLatestBlockhashAndContext(level);
    assert.deepEqual([value.blockhash, context.slot], [tip[level].blockhash, tip[level].slot]);
    assert.equal((await c.isBlockhashValid(value.blockhash, { commitment: level })).value, true);
    assert.equal(value.lastValidBlockHeight, (await c.getBlockHeight(level)) + 150);
  }
  await refused(-32016, c.getSlot({ minContextSlot: tip.finalized.slot + 1 }));
  const epoch = await c.getEpochInfo();
  assert.deepEqual([epoch.absoluteSlot, epoch.slotsInEpoch, (await c.getEpochSchedule()).slotsPerEpoch], [tip.finalized.slot, 432000, 432000]);
  assert.equal(await c.getGenesisHash(), genesis);
  assert.match((await c.getVersion())['solana-core'], /^2\.\d+\.\d+$/);

  assert.equal(await c.getBalance(key), account.lamports);
  const nothing = { dataSlice: { offset: 0, length: 0 } };
  const info = await c.getAccountInfo(key, nothing);
  assert.deepEqual([info.lamports, info.owner.toBase58(), info.executable], [account.lamports, account.owner, account.executable]);
  const several = await c.getMultipleAccountsInfo([key, new PublicKey(genesis)], nothing);
  assert.deepEqual([several[0].lamports, several[1]], [account.lamports, null]);
  if (keepsData) await web3Data(c, key);
  else await assert.rejects(c.getAccountInfo(key), /is not kept here/); // web3.js drops the code

  const held = (await c.getParsedTokenAccountsByOwner(key, { programId: new PublicKey(tokenProgram) })).value;
  assert.deepEqual(held.map((h) => [h.pubkey.toBase58(), h.account.data.parsed.info.tokenAmount.amount]), tokens.map((t) => [t.token_account, t.amount]));
  assert.deepEqual(held.map((h) => h.account.data.parsed.info.tokenAmount.uiAmountString), tokens.map((t) => t.ui_amount));
  const one = await c.getParsedTokenAccountsByOwner(key, { mint: new PublicKey(tokens[0].mint) });
  assert.deepEqual(one.value.map((h) => h.account.data.parsed.info.mint), tokens.filter((t) => t.mint === tokens[0].mint).map((t) => t.mint));
  assert.equal((await c.getTokenAccountBalance(new PublicKey(tokens[0].token_account))).value.amount, tokens[0].amount);
  assert.equal((await c.getTokenSupply(new PublicKey(mint))).value.amount, supply.supply);
  assert.equal((await c.getParsedAccountInfo(new PublicKey(mint))).value.data.parsed.info.decimals, supply.decimals);
  await refused(-32602, c.getTokenSupply(key));
  if (keepsData) await web3Largest(c, new PublicKey(mint));
  else await refused(-32010, c.getTokenLargestAccounts(new PublicKey(mint)));
  const program = await c.getProgramAccounts(new PublicKey(tokenProgram), nothing);
  assert(program.some((p) => p.pubkey.toBase58() === tokens[0].token_account));

  assert.equal(await c.getBlockTime(block.slot), Date.parse(block.timestamp) / 1000);
  const { signatures, blockhash, previousBlockhash, parentSlot } = await c.getBlockSignatures(block.slot);
  assert.deepEqual([signatures, blockhash, previousBlockhash, parentSlot], [block.signatures, block.blockhash, block.previous_blockhash, block.parent_slot]);
  const first = await c.getFirstAvailableBlock();
  const slots = await c.getBlocks(first, block.slot);
  assert.deepEqual([slots[0], slots.at(-1), slots.includes(block.parent_slot), await c.getMinimumLedgerSlot()], [first, block.slot, true, first]);
  const statuses = (await c.getSignatureStatuses(history.map((t) => t.signature))).value;
  assert.deepEqual(statuses.map((s) => [s.slot, s.err === null, s.confirmationStatus]), history.map((t) => [t.slot, t.success, 'finalized']));
  const listed = await c.getSignaturesForAddress(key, { limit: 5 });
  assert.deepEqual(listed.map((t) => [t.signature, t.slot, t.err === null]), history.map((t) => [t.signature, t.slot, t.success]));
  await refused(-32601, c.getTransaction(history[0].signature, { maxSupportedTransactionVersion: 0 }));
}

// web3Largest compares the largest accounts of a mint with those of its program that hold the mint.
async function web3Largest(c, mint) {
  const filters = [{ dataSize: 165 }, { memcmp: { offset: 0, bytes: mint.toBase58() } }];
  const holders = (await c.getProgramAccounts(new PublicKey(tokenProgram), { filters })).map(({ account }) => account.data.readBigUInt64LE(64));
  const want = holders.sort((a, b) => (a < b ? 1 : a > b ? -1 : 0)).slice(0, 20).map(String);
  const largest = (await c.getTokenLargestAccounts(mint)).value;
  assert.deepEqual(largest.map((l) => l.amount), want);
  assert.equal((await c.getTokenAccountBalance(largest[0].address)).value.uiAmountString, largest[0].uiAmountString);
}

// web3Data compares data, as a whole, in parts and by filters.
async function web3Data(c, key) {
  const token = tokens[0].token_account;
  const want = await ask(`/accounts?keys=${token},${mint},${wallet}&include=data&commitment=finalized`);
  const keys = [token, mint, wallet].map((k) => new PublicKey(k));
  const found = await c.getMultipleAccountsInfo(keys);
  assert.deepEqual(found.map((a) => a.data.toString('base64')), want.accounts.map((a) => a.data));
  const whole = found[0].data;
  assert.equal(whole.length, 165);
  assert.deepEqual((await c.getAccountInfo(keys[0])).data, whole);
  assert.deepEqual((await c.getAccountInfo(keys[0], { dataSlice: { offset: 32, length: 32 } })).data, key.toBuffer());
  const filters = [{ dataSize: 165 }, { memcmp: { offset: 32, bytes: wallet } }, { memcmp: { offset: 0, bytes: whole.subarray(0, 32).toString('base64'), encoding: 'base64' } }];
  const mine = await c.getProgramAccounts(new PublicKey(tokenProgram), { filters });
  assert.deepEqual(mine.map((p) => [p.pubkey.toBase58(), p.account.data.toString('base64')]), [[token, whole.toString('base64')]]);
  const parsed = (await c.getParsedAccountInfo(keys[1])).value.data;
  const authority = parsed.parsed.info.mintAuthority;
  assert.deepEqual([parsed.space, authority === null || new PublicKey(authority).toBase58() === authority], [82, true]);
  for (const held of [await getAccount(c, keys[0]), ...(await getMultipleAccounts(c, [keys[0]]))]) {
    assert.deepEqual([held.owner.toBase58(), held.mint.toBase58(), String(held.amount)], [wallet, tokens[0].mint, tokens[0].amount]);
  }
  const of = await getMint(c, keys[1]);
  assert.deepEqual([String(of.supply), of.decimals, of.mintAuthority?.toBase58() ?? null], [supply.supply, supply.decimals, authority]);
}

async function kit() {
  const rpc = createSolanaRpc(url); // asks for confirmed where nothing else is said
  const finalized = { commitment: 'finalized' };
  const [key, of, token, slot] = [address(wallet), address(mint), address(tokens[0].token_account), BigInt(block.slot)];
  for (const level of levels) {
    const { value } = await rpc.getLatestBlockhash({ commitment: level }).send();
    const valid = await rpc.isBlockhashValid(value.blockhash, { commitment: level }).send();
    assert.deepEqual([await rpc.getSlot({ commitment: level }).send(), value.blockhash, valid.value], [BigInt(tip[level].slot), tip[level].blockhash, true]);
  }
  const slice = { encoding: 'base64', dataSlice: { offset: 0, length: 0 }, ...finalized };
  const signatures = { transactionDetails: 'signatures', rewards: false, maxSupportedTransactionVersion: 0, ...finalized };
  const parsed = { encoding: 'jsonParsed', ...finalized };
  const shown = ({ lamports, owner, executable }) => [lamports, owner, executable];
  const held = [BigInt(account.lamports), account.owner, account.executable];
  const amounts = ({ value }) => value.map((h) => h.account.data.parsed.info.tokenAmount.amount);
  const first = await rpc.getFirstAvailableBlock().send();
  const lent = (await rpc.getProgramAccounts(address(tokenProgram), parsed).send()).find((p) => p.account.data.parsed.info.delegate);
  const { delegate, mint: spent } = lent.account.data.parsed.info;
  // What is asked, what is taken of the answer, and what that must be.
  const calls = [
    [rpc.getHealth(), (health) => health, 'ok'],
    [rpc.getGenesisHash(), (hash) => hash, genesis],
    [rpc.getIdentity(), ({ identity }) => identity.length > 31, true],
    [rpc.getVersion(), (version) => /^2\.\d+\.\d+$/.test(version['solana-core']), true],
    [rpc.getEpochInfo(finalized), (e) => [e.absoluteSlot, e.slotsInEpoch, e.epoch * e.slotsInEpoch + e.slotIndex, e.blockHeight > 0n], [slot, 432000n, slot, true]],
    [rpc.getEpochSchedule(), (s) => [s.slotsPerEpoch, s.warmup], [432000n, false]],
    [rpc.getBlockHeight(finalized), (height) => height, (await rpc.getEpochInfo(finalized).send()).blockHeight],
    [rpc.minimumLedgerSlot(), (oldest) => oldest, first],
    [rpc.getBlocks(first, slot, finalized), (slots) => [slots[0], slots.at(-1), slots.includes(BigInt(block.parent_slot))], [first, slot, true]],
    [rpc.getBlocksWithLimit(BigInt(block.parent_slot), 2, finalized), (slots) => slots, [BigInt(block.parent_slot), slot]],
    [rpc.getBlockTime(slot), (time) => time, BigInt(Date.parse(block.timestamp) / 1000)],
    [rpc.getBlock(slot, signatures), (b) => [b.blockhash, b.signatures], [block.blockhash, block.signatures]],
    [rpc.getBalance(key, finalized), ({ value }) => value, BigInt(account.lamports)],
    [rpc.getAccountInfo(key, slice), ({ value }) => shown(value), held],
    [rpc.getMultipleAccounts([key], slice), ({ value }) => value.map(shown), [held]],
    [rpc.getProgramAccounts(address(tokenProgram), slice), (all) => all.some((p) => p.pubkey === token), true],
    [rpc.getTokenAccountBalance(token, finalized), ({ value }) => [value.amount, value.uiAmountString], [tokens[0].amount, tokens[0].ui_amount]],
    [rpc.getTokenSupply(of, finalized), ({ value }) => value.amount, supply.supply],
    [rpc.getTokenAccountsByOwner(key, { programId: address(tokenProgram) }, parsed), amounts, tokens.map((t) => t.amount)],
    [rpc.getTokenAccountsByDelegate(delegate, { mint: spent }, parsed), ({ value }) => value.some((h) => h.pubkey === lent.pubkey), true],
    [rpc.getTokenAccountsByDelegate(of, { mint: spent }, parsed), amounts, []],
    [rpc.getSignatureStatuses([signature(history[0].signature)], { searchTransactionHistory: true }), ({ value }) => value[0].slot, BigInt(history[0].slot)],
    [rpc.getSignaturesForAddress(key, { limit: 5, ...finalized }), (all) => all.map((t) => t.signature), history.map((t) => t.signature)],
  ];
  for (const [call, take, want] of calls) assert.deepEqual(take(await call.send()), want);
  if (!keepsData) return refused(-32010, rpc.getTokenLargestAccounts(of, finalized).send());
  const [largest] = (await rpc.getTokenLargestAccounts(of, finalized).send()).value;
  assert.equal((await rpc.getTokenAccountBalance(largest.address, finalized).send()).value.amount, largest.amount);
}

await web3();
await kit();
