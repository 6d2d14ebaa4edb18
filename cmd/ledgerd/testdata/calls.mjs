// Makes a call of each kind with the JavaScript client, and prints a line for each: the path, and what the client makes of the answer.
// Arguments: the module of the client, the node's address, and what to ask for.
import { pathToFileURL } from 'node:url';

const [library, address, words] = process.argv.slice(2);
const { Client, StatusError } = await import(pathToFileURL(library));
const { slot, signature, key, wallet, mint, program, cursor, nobody } = JSON.parse(words);
const client = new Client(address);

/** JSON in which a BigInt is written with all of its digits. */
const exact = (value) => JSON.stringify(value, (_, v) => (typeof v === 'bigint' ? `${v}n` : v)).replace(/"(\d+)n"/g, '$1');

async function show(path, call) {
  try {
    const { value, slot: at } = await call;
    console.log(exact({ path, status: 200, slot: at, value }));
  } catch (e) {
    if (!(e instanceof StatusError)) throw e;
    console.log(exact({ path, status: e.status, retryAfter: e.retryAfter, value: { error: e.text, details: e.details } }));
  }
}

const later = BigInt(slot) + 1000n;
await show('/health', client.health());
await show('/status', client.status());
await show('/blocks/latest', client.latestBlock({ commitment: 'processed', min_slot: slot }));
await show(`/blocks/latest?min_slot=${later}`, client.latestBlock({ min_slot: later, wait_ms: 1, commitment: undefined }));
await show(`/blocks/${slot}?include=transactions`, client.block(BigInt(slot), { include: 'transactions' }));
await show(`/blocks/${later}`, client.block(later));
await show(`/transaction/${signature}`, client.transaction(signature));
await show(`/transactions/recent?limit=3&before=${signature}`, client.recent({ limit: 3, before: signature }));
await show(`/account/${key}?include=token`, client.account(key, { include: 'token' }));
await show(`/account/${nobody}`, client.account(nobody));
await show('/account/a%2Fb', client.account('a/b'));
await show(`/account/${key}/transactions?limit=2&order=oldest&status=success&from_slot=0&to_slot=${slot}`,
  client.transactions(key, { limit: 2, order: 'oldest', status: 'success', from_slot: 0n, to_slot: BigInt(slot) }));
await show(`/account/${key}/balance`, client.balance(key));
await show(`/account/${wallet}/tokens`, client.tokens(wallet));
await show(`/account/${mint}/holders?limit=2`, client.holders(mint, { limit: 2 }));
await show(`/accounts/program/${program}?limit=3&cursor=${cursor}`, client.program(program, { limit: 3, cursor }));
await show(`/accounts?keys=${key},${nobody}`, client.accounts([key, nobody]));
