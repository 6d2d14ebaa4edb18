// Tests what the JavaScript client makes of refusals, with a node that answers what it is told to. Argument: the module of the client.
import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { pathToFileURL } from 'node:url';

const { Client, StatusError, decimal, integers, pages, parse } = await import(pathToFileURL(process.argv[2]));
const limits = (remaining) => ({ 'X-RateLimit-Limit': 100, 'X-RateLimit-Remaining': remaining, 'X-RateLimit-Reset': 1800000000 });
const refusal = [429, { ...limits(0), 'Retry-After': 1 }, '{"error":"Rate limit exceeded","details":"wait"}'];
const record = '{"pubkey":"k","lamports":18446744073709551615,"owner":"","executable":false,"rent_epoch":9007199254740993}';
const answers = []; // of the requests to come
const asked = [];
const node = createServer((request, response) => {
  asked.push([request.url, request.headers.authorization]);
  const [status, headers, body] = answers.shift();
  response.writeHead(status, headers).end(body);
});
await new Promise((listens) => node.listen(0, '127.0.0.1', listens));
const address = `http://127.0.0.1:${node.address().port}`;

// A client with patience waits as long as it is asked to, and asks again; its key goes in a header field, below the path of a proxy.
const patient = new Client(`${address}/proxy/api/`, { patience: 60_000, apiKey: 'secret' });
answers.push(refusal, [200, { ...limits(41), 'X-Ledger-Slot': '18446744073709551615', 'X-Ledger-Lag-Ms': 7, 'X-Ledger-Partial': 'owner,rent_epoch' }, record]);
const { value, slot, lagMs, partial } = await patient.account('k/ä', { min_slot: 5n, cursor: undefined });
assert.deepEqual(value, { pubkey: 'k', lamports: 18446744073709551615n, owner: '', executable: false, rent_epoch: 9007199254740993n });
assert.deepEqual([slot, lagMs, partial], [18446744073709551615n, 7, ['owner', 'rent_epoch']]);
assert.deepEqual(patient.budget, { limit: 100, remaining: 41, reset: new Date(1800000000_000) });
assert.deepEqual(asked, Array(2).fill(['/proxy/api/account/k%2F%C3%A4?min_slot=5', 'Bearer secret']));

// One without is refused at once, and so is one that would have to wait longer than it may.
for (const patience of [undefined, 999]) {
  const hasty = new Client(address, { patience });
  answers.push(refusal);
  await assert.rejects(hasty.health(), (e) => e instanceof StatusError && e.status === 429 && e.text === 'Rate limit exceeded'
    && e.details === 'wait' && e.retryAfter === 1 && hasty.budget.remaining === 0);
}

// What is not a node's answer is told by its status; nothing is known of a budget, nor of a slot.
const client = new Client(address);
answers.push([502, {}, '<html>'], [200, {}, '{"status":"ok"}']);
await assert.rejects(client.status(), (e) => e instanceof StatusError && e.status === 502 && e.text === 'Bad Gateway' && e.retryAfter === 0);
assert.equal((await client.health({ include: 'details' })).slot, null);
assert.equal(asked.at(-1)[0], '/api/health?include=details');
assert.equal(client.budget.reset, null);

// So is a refusal of another shape, and of another listener what it says. A time to come again that is no number of seconds is not known: it is
// neither asked for at once, nor without end.
for (const [body, text, details] of [
  ['null', 'Not Found', ''], ['{"error":7,"details":{}}', 'Not Found', ''], ['{"error":{"code":1,"message":"another port"}}', 'Not Found', 'another port'],
]) {
  answers.push([404, {}, body]);
  await assert.rejects(client.status(), (e) => e instanceof StatusError && e.text === text && e.details === details);
}
for (const later of ['Wed, 21 Oct 2099 07:28:00 GMT', '-5']) {
  answers.push([503, { 'Retry-After': later }, ''], [200, {}, '{}']);
  await assert.rejects(patient.status(), (e) => e.status === 503 && e.retryAfter === 0);
  answers.length = 0;
}

// An older browser's URLSearchParams does not say how many parameters it has.
const size = Object.getOwnPropertyDescriptor(URLSearchParams.prototype, 'size');
delete URLSearchParams.prototype.size;
answers.push([200, {}, '{}']);
await client.latestBlock({ commitment: 'finalized' });
assert.equal(asked.at(-1)[0], '/api/blocks/latest?commitment=finalized');
Object.defineProperty(URLSearchParams.prototype, 'size', size);

// A call that is given up ends, also while it waits.
answers.push(refusal);
const givenUp = new AbortController();
const call = assert.rejects(patient.latestBlock({ signal: givenUp.signal }), (e) => e === givenUp.signal.reason);
while (answers.length > 0) await new Promise(setImmediate); // the node has answered
givenUp.abort();
await call;

// One that has waited leaves nothing at its signal, which may be that of many calls.
const ofMany = new AbortController();
const waits = new Client(address, { patience: 60_000, fetch: (url, { headers }) => fetch(url, { headers }) }); // fetch has listeners of its own
answers.push(refusal, [200, {}, '{}']);
await waits.latestBlock({ signal: ofMany.signal });
assert.equal(getEventListeners(ofMany.signal, 'abort').length, 0);

// Numbers are exact wherever they stand; words in strings stay what they are.
const text = '{"slot":1,"fee":null,"seq":-1,"lamports":9007199254740993,"details":"\\"lamports\\":5 \\\\\\"seq\\":6","list":[{"from_seq":0}],"decimals":9}';
assert.deepEqual(parse(text), {
  slot: 1n, fee: null, seq: -1, lamports: 9007199254740993n, details: '"lamports":5 \\"seq":6', list: [{ from_seq: 0n }], decimals: 9,
});
assert.equal(JSON.stringify(parse('{"slot":9007199254740993,"fee":null,"decimals":9}'), decimal), '{"slot":"9007199254740993","fee":null,"decimals":9}');

// What the documents call an integer of 64 bits without a sign, by its format or as a Slot or Seq, is BigInt, and nothing else is.
const described = new Set();
function gather(part) {
  if (part === null || typeof part !== 'object') return;
  for (const [name, field] of Object.entries(part.properties ?? {})) {
    const text = JSON.stringify(field);
    if (/"format":"uint64"|schemas\/(Slot|Seq)"/.test(text) && !text.includes('"properties"')) described.add(name);
  }
  Object.values(part).forEach(gather);
}
for (const document of ['openapi.json', 'console/asyncapi.json']) {
  gather(JSON.parse(readFileSync(new URL(`../../../httpd/${document}`, import.meta.url))).components);
}
assert.deepEqual(integers, described);
for (const name of described) assert.equal(parse(`{"${name}":7}`)[name], 7n, name);

// A list is read to its end, whatever names its next page; a page without a record is not the end.
for (const [next, name] of [['next_cursor', 'cursor'], ['next_before', 'before'], ['next_after', 'after']]) {
  answers.push([200, {}, `{"rows":[1],"${next}":"a"}`], [200, {}, `{"rows":[],"${next}":"b"}`], [200, {}, `{"rows":[2],"${next}":null}`]);
  asked.length = 0;
  const rows = [];
  for await (const { value } of pages((page) => client.recent(page), { limit: 1 })) rows.push(...value.rows);
  assert.deepEqual([rows, asked.map(([url]) => url.split('?')[1])], [[1, 2], ['limit=1', `limit=1&${name}=a`, `limit=1&${name}=b`]]);
}

// A transaction is waited for as long as the caller says, and no refusal but that it is not there is passed over.
const unknown = [404, {}, '{"error":"Not found","details":"transaction not found"}'];
answers.push(unknown, unknown, [200, {}, '{"slot":7}']);
assert.equal((await client.waitFor('sig', 'finalized')).value.slot, 7n);
assert.equal(asked.at(-1)[0], '/api/transaction/sig?commitment=finalized&wait_ms=2000');
answers.push(unknown);
await assert.rejects(client.waitFor('sig', 'finalized', { within: 0 }), (e) => e.status === 404);
answers.push(unknown, refusal);
await assert.rejects(client.waitFor('sig'), (e) => e.status === 429);
answers.push(refusal, [200, {}, '{"slot":7}']);
await assert.rejects(patient.waitFor('sig', 'finalized', { within: 500 }), (e) => e.status === 429);
answers.length = 0;

// What answers without waiting, as something between does, is asked some ten times a second.
answers.push(...Array(1000).fill(unknown));
await assert.rejects(client.waitFor('sig', 'finalized', { within: 500 }), (e) => e.status === 404);
assert(1000 - answers.length <= 7, `${1000 - answers.length} questions in half a second`);
answers.length = 0;

// A new subscription that was refused as too much work waits until the node does the most again. One that goes on where it was, or lost
// its connection for another reason, comes back soon. One whose message would be refused again does not.
function after(subscription, code) {
  let [socket, told] = [];
  class Socket { constructor() { socket = this; } send() {} close() {} }
  const stream = new Client(address, { WebSocket: Socket }).stream(subscription, {
    disconnected(why, wait) { told = wait; }, failed(error) { told = error; },
  });
  socket.onopen();
  socket.onclose({ code, reason: 'words' });
  stream.close();
  return told;
}
assert.equal(after({}, 1008), 20_000);
for (const soon of [after({ after: 7n }, 1008), after({}, 4008), after({}, 1001)]) assert(soon >= 50 && soon < 200, `${soon} ms`);
const failed = after({}, 1009);
assert(failed instanceof StatusError && failed.details === 'words');

// A stream that is closed when it is told of the end of a connection stays closed, and one that connects then has one connection.
for (const [what, connections] of [['close', 1], ['reconnect', 2]]) {
  const sockets = [];
  class Socket { constructor() { sockets.push(this); } send() {} close() {} }
  const stream = new Client(address, { WebSocket: Socket }).stream({}, { disconnected() { stream[what](); } });
  sockets[0].onopen();
  sockets[0].onclose({ code: 1001, reason: '' });
  await new Promise((passed) => setTimeout(passed, 200)); // the first pause is shorter
  assert.equal(sockets.length, connections, what);
  stream.close();
}

// A handshake that is refused is asked for once more as a plain request, which says why. What passes is tried again when the node says, what
// would be refused again ends the stream, and where the request says nothing of it the socket's own error and code are all there is.
async function refused(...answer) {
  let [socket, tell] = [];
  class Socket { constructor() { socket = this; } close() {} }
  answers.push(answer);
  const told = new Promise((resolve) => { tell = resolve; });
  const caller = new Client(`${address}/proxy/api`, { patience: 60_000, apiKey: 'secret', WebSocket: Socket });
  const stream = caller.stream({ commitment: 'final' }, { disconnected: (why, wait) => tell([why, wait]), failed: tell });
  socket.onerror({ message: 'connect ECONNREFUSED' });
  socket.onclose({ code: 1006, reason: '' });
  const what = await told;
  stream.close();
  assert.deepEqual(asked.at(-1), ['/proxy/api/ws/accounts?extended=true&commitment=final', 'Bearer secret']);
  return what;
}
const [why, wait] = await refused(...refusal);
assert(why === 'status 429: Rate limit exceeded: wait' && wait === 1000, `${why}, ${wait} ms`);
for (const days of [30, Infinity]) { // no timer takes as much: it would be over at once
  const [, wait] = await refused(503, { 'Retry-After': days * 86400 }, '');
  assert(wait > 24 * 86400_000 && wait < 2 ** 31, `${wait} ms`);
}
const final = await refused(400, {}, '{"error":"Invalid request parameters","details":"commitment must be one of processed"}');
assert(final instanceof StatusError && final.details === 'commitment must be one of processed');
assert((await refused(403, {}, '{"error":"no","details":{}}')) instanceof StatusError);
const [code] = await refused(400, {}, '{"error":"Invalid request parameters","details":"this path is a WebSocket: it needs GET"}');
assert.equal(code, 'closed with 1006 connect ECONNREFUSED');
assert.throws(() => patient.stream({ wallets: ['a'], data_size: 165 }), /for programs/);

// Where there is no WebSocket the error names the option.
delete globalThis.WebSocket;
assert.throws(() => client.stream(), /new Client\(address, \{ WebSocket \}\)/);

// A call that reaches nobody says why, of a host with several addresses for each of them.
node.close();
node.closeAllConnections();
const gone = createServer();
await new Promise((listens) => gone.listen(0, '127.0.0.1', listens));
const nobody = new Client(`http://127.0.0.1:${gone.address().port}`);
await new Promise((closed) => gone.close(closed));
await assert.rejects(nobody.health(), (e) => e instanceof TypeError && e.cause.code === 'ECONNREFUSED' && e.message === `fetch failed: ${e.cause.message}`);
const cause = new AggregateError([new Error('refused by ::1'), new Error('refused by 127.0.0.1')]);
const everywhere = new Client(address, { fetch: () => Promise.reject(new TypeError('fetch failed', { cause })) });
await assert.rejects(everywhere.health(), { message: 'fetch failed: refused by ::1, refused by 127.0.0.1' });
const enough = new Error('enough', { cause });
await assert.rejects(nobody.latestBlock({ signal: AbortSignal.abort(enough) }), (e) => e === enough);
