// Follows a node with the JavaScript client, for a test: six subscriptions, each folded. For every line on the standard input it
// prints what the folds hold by then. Arguments: the module of the client, the node's address, programs with commas between them.
import { createRequire } from 'node:module';
import { createInterface } from 'node:readline';
import { pathToFileURL } from 'node:url';

const [library, address, programs] = process.argv.slice(2);
const { Client } = await import(pathToFileURL(library));
const WebSocket = createRequire(import.meta.url)('ws');
const client = new Client(address, { WebSocket });

function follow(name, wanted, commitment) {
  const fold = { name: `${name}, ${commitment}`, starts: 0, wrong: '', seq: 0n, listing: false, accounts: new Map() };
  const processed = commitment === 'processed';
  client.stream({ programs: wanted, commitment }, {
    start(at) {
      fold.starts++;
      fold.seq = at.seq;
      fold.listing = at.snapshot;
      fold.accounts.clear();
    },
    ready() { fold.listing = false; },
    update(u) {
      if (!fold.listing && processed && (u.seq <= fold.seq || wanted.length === 0 && u.seq !== fold.seq + 1n)) {
        fold.wrong ||= `number ${u.seq} comes after ${fold.seq}`;
      }
      fold.seq = u.seq;
      fold.accounts.set(u.pubkey, `${u.lamports} ${u.owner}`);
    },
    failed(error) { fold.wrong ||= `the stream ended: ${error.message}`; },
  });
  return fold;
}

const folds = [];
for (const commitment of ['processed', 'confirmed', 'finalized']) {
  folds.push(follow('everything', [], commitment), follow('programs', programs.split(','), commitment));
}
console.log('following');
for await (const _ of createInterface({ input: process.stdin })) {
  console.log(JSON.stringify(folds.map(({ name, starts, wrong, accounts }) => ({ name, starts, wrong, accounts: Object.fromEntries(accounts) }))));
}
process.exit(0);
