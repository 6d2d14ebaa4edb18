// Follows a node with the JavaScript client, for a test: some subscriptions, each folded. For every line on the standard input it
// prints what the folds hold by then. Arguments: the module of the client, the node's address, a file of the subscriptions.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { createInterface } from 'node:readline';
import { pathToFileURL } from 'node:url';

const [library, address, wishes] = process.argv.slice(2);
const { Client } = await import(pathToFileURL(library));
const WebSocket = createRequire(import.meta.url)('ws');
const client = new Client(address, { WebSocket });

assert.throws(() => client.stream({ pubkeys: Array(10_001).fill('') }), RangeError);

function follow({ name, ...wanted }) {
  const fold = { name, starts: 0, wrong: '', gaps: 0, seq: 0n, listing: false, accounts: new Map() };
  const processed = wanted.commitment === 'processed';
  const whole = !wanted.pubkeys && !wanted.programs;
  client.stream(wanted, {
    start(at) {
      fold.starts++;
      fold.seq = at.seq;
      fold.listing = at.snapshot;
      fold.accounts.clear();
    },
    ready() { fold.listing = false; },
    update(u) {
      if (!fold.listing && processed && (u.seq <= fold.seq || whole && u.seq !== fold.seq + 1n)) {
        fold.wrong ||= `number ${u.seq} comes after ${fold.seq}`;
      }
      fold.seq = u.seq;
      fold.accounts.set(u.pubkey, `${u.lamports} ${u.owner}`);
    },
    gap() { fold.gaps++; },
    failed(error) { fold.wrong ||= `the stream ended: ${error.message}`; },
  });
  return fold;
}

const folds = JSON.parse(readFileSync(wishes)).map(follow);
console.log('following');
for await (const _ of createInterface({ input: process.stdin })) {
  console.log(JSON.stringify(folds.map(({ name, starts, wrong, gaps, accounts }) => ({ name, starts, wrong, gaps, accounts: Object.fromEntries(accounts) }))));
}
process.exit(0);
