// Follows a node with the libraries of Solana as they are. Arguments: the address of JSON-RPC, and a program whose accounts change.
import assert from 'node:assert/strict';
import { Connection, PublicKey } from '@solana/web3.js';
import { AccountLayout, unpackAccount } from '@solana/spl-token';
import { address, createSolanaRpc, createSolanaRpcSubscriptions, signature } from '@solana/kit';

const [url, program] = process.argv.slice(2);
const sockets = url.replace('http', 'ws');

// come collects the first notes of something, and fails where the library swallows one.
function come(count, begin) {
  return new Promise((done) => {
    const notes = [];
    begin((...note) => {
      if (notes.push(note) === count) done(notes);
    });
  });
}

async function web3() {
  const c = new Connection(url, { wsEndpoint: sockets, commitment: 'processed' });
  c._rpcWebSocket.on('error', assert.fail);
  const [slots, roots, members] = await Promise.all([
    come(5, (note) => c.onSlotChange(note)),
    come(2, (note) => c.onRootChange(note)),
    come(5, (note) => c.onProgramAccountChange(new PublicKey(program), note, { commitment: 'processed' })),
  ]);
  for (const [i, [s]] of slots.entries()) assert(s.parent < s.slot && s.root < s.slot && (i === 0 || s.parent >= slots[i - 1][0].parent));
  assert(roots[1][0] > roots[0][0]);
  const key = members[0][0].accountId;
  for (const [m, at] of members) assert(at.slot > 0 && (m.accountInfo.owner.toBase58() === program || m.accountInfo.lamports === 0));
  for (const [m] of members) if (m.accountInfo.data.length === AccountLayout.span) unpackAccount(m.accountId, m.accountInfo);
  const id = c.onAccountChange(key, () => {}, { commitment: 'processed' });
  await c.removeAccountChangeListener(id);
  const [sent] = (await c.getBlockSignatures(await c.getSlot('confirmed'), 'confirmed')).signatures; // which is not final yet
  const [[note]] = await come(1, (note) => c.onSignatureWithOptions(sent, note, { commitment: 'finalized', enableReceivedNotification: true }));
  assert.equal(note.type, 'received'); // and web3.js listens no more
  const [[, at]] = await come(1, (note) => c.onSignature(sent, note, 'finalized'));
  assert.equal(at.slot, (await c.getSignatureStatus(sent)).value.slot);
  await c.confirmTransaction(sent, 'finalized'); // which is known by now
}

async function kit() {
  const rpc = createSolanaRpcSubscriptions(sockets);
  const stop = new AbortController();
  const slots = [];
  for await (const s of await rpc.slotNotifications().subscribe({ abortSignal: stop.signal })) if (slots.push(s.slot) === 3) break;
  const notes = await rpc.programNotifications(address(program), { encoding: 'jsonParsed', commitment: 'processed' }).subscribe({ abortSignal: stop.signal });
  for await (const n of notes) {
    assert(n.value.account.lamports >= 0n && n.context.slot >= slots[0]);
    break;
  }
  const [sent] = (await createSolanaRpc(url).getBlock(slots[0], { transactionDetails: 'signatures', rewards: false, commitment: 'confirmed' }).send()).signatures;
  for await (const n of await rpc.signatureNotifications(signature(sent), { commitment: 'finalized' }).subscribe({ abortSignal: stop.signal })) {
    assert(n.context.slot === slots[0] && 'err' in n.value);
    break;
  }
  stop.abort();
}

await web3();
await kit();
process.exit(0); // web3.js keeps its socket
