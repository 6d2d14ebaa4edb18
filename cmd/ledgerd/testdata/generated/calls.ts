// Makes a call of each kind with openapi-fetch and the types that openapi-typescript makes, and prints a line for each: the path, and what
// was decoded. Arguments: the node's address, and what to ask for. It is checked on the way that ledgerd.d.ts says of
// records what the document says, and of the client what ledgerd.js has.
import type { components } from './api.js';
import { connect } from './exact.js';
import type * as told from './ledgerd.js';
import type * as held from './client/ledgerd.js';
import type OfNode from 'ws';

declare const process: { argv: string[] };

type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends (<T>() => T extends B ? 1 : 2) ? true : false;
type Flat<T> = T extends bigint | string | number | boolean | null | undefined ? T : { [K in keyof T]: Flat<T[K]> };
type Alike<A, B> = Same<Flat<A>, Flat<B>>;
type Documented = components['schemas'];
type Told<Call extends keyof told.Client> = told.Client[Call] extends (...a: never[]) => Promise<told.Answer<infer T>> ? T : never;

const same = <A, B>(_: Alike<A, B>) => {};
const socket: [told.SocketClass, typeof OfNode] extends [infer Wanted, infer Given] ? Given extends Wanted ? true : never : never = true; // npm's ws is one
same<Told<'health'>, Documented['Health']>(true);
same<Told<'status'>, Documented['Status']>(true);
same<Told<'latestBlock'>, Documented['Block']>(true);
same<Told<'block'>, Documented['FullBlock']>(true);
same<Told<'transaction'>, Documented['Transaction']>(true);
same<Told<'recent'>, Documented['RecentTransactions']>(true);
same<Told<'transactions'>, Documented['AccountTransactions']>(true);
same<Told<'account'>, Documented['Account']>(true);
same<Told<'balance'>, Documented['Balance']>(true);
same<Told<'tokens'>, Documented['Tokens']>(true);
same<Told<'holders'>, Documented['Holders']>(true);
same<Told<'program'>, Documented['ProgramAccounts']>(true);
same<Told<'accounts'>, Documented['Accounts']>(true);
export const whole = (client: held.Client): told.Client => client;
export const nothingMore = (member: Exclude<keyof held.Client, keyof told.Client>): 'options' | 'get' | 'ask' | 'headers' | 'answer' | 'note' => member;

const { slot, signature, key, wallet, mint, program, cursor, nobody } = JSON.parse(process.argv[3] ?? '', (name, v) => (name === 'slot' ? BigInt(v) : v));
const client = connect(process.argv[2] ?? '');

/** JSON in which a BigInt is written with all of its digits. */
const exact = (value: unknown) => JSON.stringify(value, (_, v) => (typeof v === 'bigint' ? `${v}n` : v)).replace(/"(\d+)n"/g, '$1');

async function show(path: string, call: Promise<{ data?: unknown; error?: unknown; response: Response }>) {
  const { data, error, response } = await call;
  console.log(exact({ path, status: response.status, value: data ?? error }));
}

await show('/health', client.GET('/health'));
await show('/status', client.GET('/status'));
await show('/blocks/latest', client.GET('/blocks/latest', { params: { query: { commitment: 'processed', min_slot: slot } } }));
await show(`/blocks/${slot}?include=transactions`, client.GET('/blocks/{slot}', { params: { path: { slot }, query: { include: 'transactions' } } }));
await show(`/transaction/${signature}`, client.GET('/transaction/{signature}', { params: { path: { signature } } }));
await show(`/transactions/recent?limit=3&before=${signature}`, client.GET('/transactions/recent', { params: { query: { limit: 3, before: signature } } }));
await show(`/account/${key}?include=token`, client.GET('/account/{pubkey}', { params: { path: { pubkey: key }, query: { include: 'token' } } }));
await show(`/account/${nobody}`, client.GET('/account/{pubkey}', { params: { path: { pubkey: nobody } } }));
await show(`/account/${key}/transactions?limit=3`, client.GET('/account/{pubkey}/transactions', { params: { path: { pubkey: key }, query: { limit: 3 } } }));
await show(`/account/${key}/balance`, client.GET('/account/{pubkey}/balance', { params: { path: { pubkey: key } } }));
await show(`/account/${wallet}/tokens`, client.GET('/account/{pubkey}/tokens', { params: { path: { pubkey: wallet } } }));
await show(`/account/${mint}/holders?limit=3`, client.GET('/account/{pubkey}/holders', { params: { path: { pubkey: mint }, query: { limit: 3 } } }));
const page = { path: { program_id: program }, query: { limit: 3, cursor } };
await show(`/accounts/program/${program}?limit=3&cursor=${cursor}`, client.GET('/accounts/program/{program_id}', { params: page }));
await show(`/accounts?keys=${key},${nobody}`, client.GET('/accounts', { params: { query: { keys: [key, nobody] } } }));
