// A client of a ledgerd node: its REST interface, and streams without gaps. One ES module without dependencies, for browsers and for
// programs that hand it a WebSocket. Types are in ledgerd.d.ts.
//
// Integers of the ledger (slots, lamports, numbers of updates and the like) are BigInt, so they are exact up to 2^64-1. Amounts of
// tokens are decimal strings. What the ledger never recorded is null.

/** The fields that are integers of the ledger. */
export const integers = new Set(['slot', 'parent_slot', 'block_height', 'lamports', 'rent_epoch', 'fee', 'seq', 'from_seq', 'to_seq', 'oldest_seq',
  'newest_seq', 'from_slot', 'to_slot', 'history_from']);

/** Reads JSON of a node: integers of the ledger as BigInt. */
export function parse(text) {
  // A quote inside a string is escaped, so only names of fields match.
  const exact = text.replace(/"([a-z_]+)":(\d+)/g, (whole, name, digits) => (integers.has(name) ? `"${name}":"${digits}"` : whole));
  return JSON.parse(exact, (name, value) => (typeof value === 'string' && integers.has(name) ? BigInt(value) : value));
}

/** For JSON.stringify(value, decimal), which takes no BigInt: integers of the ledger as strings of digits. */
export const decimal = (name, value) => (typeof value === 'bigint' ? String(value) : value);

/** Asks for a list page by page: for await (const { value } of pages((page) => client.tokens(wallet, page), { limit: 100 })). */
export async function* pages(ask, read = {}) {
  for (let page = read; page;) {
    const answer = await ask(page);
    yield answer;
    const { next_cursor: cursor, next_before: before, next_after: after } = answer.value;
    const next = Object.entries({ cursor, before, after }).find(([, name]) => name);
    page = next && { ...read, [next[0]]: next[1] };
  }
}

/** A node's refusal or failure. retryAfter is in seconds, 0 where the node does not say. */
export class StatusError extends Error {
  constructor(status, text, details, retryAfter) {
    super(`status ${status}: ${text}: ${details}`);
    Object.assign(this, { name: 'StatusError', status, text, details, retryAfter });
  }
}

const sleep = (ms, signal) => new Promise((resolve, reject) => {
  signal?.throwIfAborted();
  const giveUp = () => { clearTimeout(timer); reject(signal.reason); };
  const timer = setTimeout(() => { signal?.removeEventListener('abort', giveUp); resolve(); }, ms);
  signal?.addEventListener('abort', giveUp);
});

/** One node, or one cluster behind a balancer. */
export class Client {
  /** budget is what the node last said that this caller may still ask. */
  budget = { limit: 0, remaining: 0, reset: null };

  /** address is such as http://127.0.0.1:8080; in a page that the node serves, location.origin. */
  constructor(address, options = {}) {
    const url = new URL(address);
    this.base = `${url.origin}${url.pathname.replace(/\/$/, '').replace(/\/api$/, '')}/api`;
    this.options = { ...options, patience: options.patience ?? 0 };
  }

  health(read) { return this.get('/health', read); }
  status() { return this.get('/status'); }
  latestBlock(read) { return this.get('/blocks/latest', read); }
  block(slot, read) { return this.get(`/blocks/${slot}`, read); }
  transaction(signature, read) { return this.get(`/transaction/${encodeURIComponent(signature)}`, read); }
  /** Returns a transaction once it has reached a level; after some ms it throws the node's 404. */
  async waitFor(signature, commitment = 'confirmed', { within = 60_000, signal } = {}) {
    for (const late = Date.now() + within; ;) {
      const asked = Date.now();
      const left = Math.max(0, late - asked);
      try {
        const patience = Math.min(this.options.patience, left);
        return await this.transaction(signature, { commitment, wait_ms: Math.min(longestWait, left), patience, signal });
      } catch (error) {
        if (error.status !== 404 || left === 0) throw error;
      }
      await sleep(asked + leastPause - Date.now(), signal); // where something answers that does not wait
    }
  }

  recent(read) { return this.get('/transactions/recent', read); }
  account(pubkey, read) { return this.get(`/account/${encodeURIComponent(pubkey)}`, read); }
  transactions(pubkey, read) { return this.get(`/account/${encodeURIComponent(pubkey)}/transactions`, read); }
  balance(pubkey, read) { return this.get(`/account/${encodeURIComponent(pubkey)}/balance`, read); }
  tokens(wallet, read) { return this.get(`/account/${encodeURIComponent(wallet)}/tokens`, read); }
  holders(mint, read) { return this.get(`/account/${encodeURIComponent(mint)}/holders`, read); }
  program(program, read) { return this.get(`/accounts/program/${encodeURIComponent(program)}`, read); }
  accounts(pubkeys, read) { return this.get('/accounts', { ...read, keys: pubkeys.join(',') }); }

  /** Asks for a path below /api, and again while the node asks to come later and the patience lasts. */
  async get(path, { signal, patience = this.options.patience, ...query } = {}) {
    const words = String(new URLSearchParams(Object.entries(query).flatMap(([name, value]) => [value ?? []].flat().map((one) => [name, one]))));
    const address = `${this.base}${path}${words && `?${words}`}`;
    for (const late = Date.now() + patience; ;) {
      const [response, text] = await this.ask(address, signal);
      if (response.ok) return this.answer(response.headers, text);
      const refused = statusError(response, text);
      const wait = refused.retryAfter * 1000;
      if (wait === 0 || Date.now() + wait > late) throw refused;
      await sleep(wait, signal);
    }
  }

  async ask(address, signal) {
    try {
      const response = await (this.options.fetch ?? fetch)(address, { headers: this.headers(), signal });
      this.note(response.headers);
      return [response, await response.text()];
    } catch (error) {
      throw signal?.aborted ? error : explained(error);
    }
  }

  headers() { return this.options.apiKey ? { Authorization: `Bearer ${this.options.apiKey}` } : {}; }

  answer(headers, text) {
    const slot = headers.get('X-Ledger-Slot');
    return {
      value: parse(text),
      slot: slot && BigInt(slot),
      lagMs: Number(headers.get('X-Ledger-Lag-Ms')),
      partial: headers.get('X-Ledger-Partial')?.split(',') ?? [],
    };
  }

  note(headers) {
    const limit = headers.get('X-RateLimit-Limit');
    if (limit === null) return; // from a proxy, not from a node
    this.budget = {
      limit: Number(limit), remaining: Number(headers.get('X-RateLimit-Remaining')), reset: new Date(1000 * headers.get('X-RateLimit-Reset')),
    };
  }

  /** Follows a subscription until it is closed. What handlers there are is told by their names. */
  stream(subscription = {}, handler = {}) { return new Stream(this, subscription, handler); }
}

function statusError(response, text) {
  let told;
  try { told = JSON.parse(text); } catch { /* it is not a node's, and its status is all there is */ }
  const first = (...texts) => texts.find((one) => typeof one === 'string');
  return new StatusError(
    response.status, first(told?.error, response.statusText), first(told?.details, told?.error?.message, ''), retryAfter(response.headers),
  );
}

/** How many seconds an answer asks to wait: 0 where it does not say, and no more than a timer takes, which is 24 days. */
export function retryAfter(headers) {
  const seconds = Number(headers.get('Retry-After')); // something between may name a date, which is NaN
  return seconds > 0 ? Math.min(seconds, 2 ** 31 / 1000 - 1) : 0;
}

// Node's fetch says only that it failed, and why in the cause: of a host with several addresses, for each of them.
function explained(error) {
  const causes = [error.cause?.errors ?? error.cause ?? []].flat();
  return causes.length > 0 ? new TypeError(`${error.message}: ${causes.map((e) => e.message).join(', ')}`, { cause: error.cause }) : error;
}

const longestWait = 2000; // ms that a node lets a question wait
const silence = 5000; // ms without a frame after which a connection counts as lost: a heartbeat comes each second
const leastPause = 100; // ms between questions, and between tries to connect; doubled with each of these that fails, and varied by half
const mostPause = 10_000;
const debtPause = 20_000; // ms at least after a node refused a new subscription as too much work: by then it does the most again
const maxNames = 10_000; // that a node takes on one connection
const partNames = 1250; // that one message says: some 1,390 would fit
const finalCodes = [1003, 1007, 1009]; // of messages that would be refused again
const sameBlocks = 1024; // more than are undone at once

/** Frames with one number, which may come again after a resume: of the newest sameBlocks blocks to twice as many. */
export class Same {
  restoring = false; // since a resume
  newer = new Set();
  older = new Set();
  #blocks = 0; // in newer
  #next = 0n; // the slot after all of them
  #middle = 0n; // the first slot in newer
  #from = 0n; // and in older

  /** Adds a frame, unless it was told before: each below what is kept was, as nothing so old is undone. */
  add(frame, text) {
    const old = (frame.slot ?? frame.to_slot) < this.#from;
    if (this.restoring && (old || this.newer.has(text) || this.older.has(text))) return false;
    this.newer.add(text);
    if (frame.type === 'slot_end') this.#end(frame.slot);
    return true;
  }

  #end(slot) {
    if (slot >= this.#next) this.#next = slot + 1n;
    if (++this.#blocks < sameBlocks) return;
    [this.older, this.newer, this.#blocks] = [this.newer, new Set(), 0];
    [this.#from, this.#middle] = [this.#middle, this.#next];
  }
}

/** One subscription through all of its connections. */
class Stream {
  seq = 0n; // the newest of any frame
  connections = 0;
  #client; #wants; #parts = []; #handler; #socket; #watchdog; #retry;
  #known = false; // the handler was told a start, with all of its snapshot
  #same = new Same();
  #answered = 0; // parts of the names that the node said it tells of
  #awaits = ''; // an answer before which nothing counts
  #listing = false; // members of a snapshot come
  #pause = leastPause;
  #closed = false;

  constructor(client, subscription, handler) {
    this.#client = client;
    this.#wants = { ...subscription };
    const names = ['pubkeys', 'programs', 'wallets'].flatMap((kind) => (subscription[kind] ?? []).map((name) => ({ kind, name })));
    if (names.length > maxNames) throw new RangeError(`a subscription has at most ${maxNames} names, this one ${names.length}: use several streams`);
    if (!subscription.programs?.length && (subscription.data_size ?? subscription.memcmp) !== undefined) {
      throw new RangeError('data_size and memcmp are for programs: name some');
    }
    if (!client.options.WebSocket && !globalThis.WebSocket) {
      throw new TypeError("there is no WebSocket here: hand one over, such as that of npm's ws, as new Client(address, { WebSocket })");
    }
    names.forEach(({ kind, name }, at) => {
      if (at % partNames === 0) this.#parts.push({});
      (this.#parts.at(-1)[kind] ??= []).push(name);
    });
    this.#handler = handler;
    if (subscription.after !== undefined) {
      this.seq = subscription.after;
      this.#known = true;
    }
    this.#connect();
  }

  /** Whether frames come. */
  get connected() { return this.#socket !== undefined && this.#awaits === ''; }

  /** Ends the stream. */
  close() {
    this.#closed = true;
    clearTimeout(this.#retry);
    this.#leave();
  }

  /** Drops the connection and resumes on another one at once. */
  reconnect() {
    clearTimeout(this.#retry);
    this.#leave();
    if (!this.#closed) this.#connect();
  }

  #tell(name, ...what) { this.#handler[name]?.(...what); }
  #say(message) { this.#socket.send(JSON.stringify(message)); }

  #connect() {
    const query = new URLSearchParams({ extended: 'true' });
    if (this.#parts.length > 0) query.set('mode', 'none'); // the names follow in messages, which have room for more of them
    for (const name of ['commitment', 'tokens', 'data']) if (this.#wants[name]) query.set(name, String(this.#wants[name]));
    if (this.#wants.conflate) query.set('overflow', 'conflate');
    const { WebSocket: given, apiKey } = this.#client.options;
    const address = `${this.#client.base.replace(/^http/, 'ws')}/ws/accounts?${query}`;
    // Browsers let nobody set fields of a handshake, so a key is offered as a subprotocol.
    const socket = new (given ?? WebSocket)(address, apiKey ? ['ledgerd', `key.${apiKey}`] : []);
    this.#socket = socket;
    this.#listing = false;
    this.#awaits = 'open';
    this.#watch();
    let opened = false;
    let why = '';
    socket.onopen = () => { if ((opened = socket === this.#socket)) this.#open(); };
    socket.onmessage = ({ data }) => { if (socket === this.#socket) this.#take(String(data)); };
    socket.onerror = ({ message = '' }) => { why = message; }; // a close follows
    socket.onclose = ({ code, reason }) => {
      if (socket !== this.#socket) return;
      if (finalCodes.includes(code)) {
        this.#fail(new StatusError(400, `closed with ${code}`, reason, 0));
      } else if (!opened && code === 1006) {
        this.#refused(socket, Object.fromEntries(query), why);
      } else {
        this.#lost(`closed with ${code} ${reason}`.trim(), code === 1008 && !this.#known ? debtPause : 0);
      }
    };
  }

  // No browser says why a handshake was refused, but a plain request for the same is refused alike, or told that the path is a WebSocket.
  async #refused(socket, query, why) {
    const error = await this.#client.get('/ws/accounts', { ...query, patience: 0 }).catch((e) => e);
    if (socket !== this.#socket) return; // it is no longer waited for
    const { status, details, retryAfter } = error;
    if (!status || details.startsWith('this path is')) this.#lost(`closed with 1006 ${why}`.trim());
    else if (status === 429 || status >= 500) this.#lost(error.message, retryAfter * 1000);
    else this.#fail(error);
  }

  // Ends the stream: the same would be refused again.
  #fail(error) {
    this.close();
    this.#tell('failed', error);
  }

  // Whoever hears nothing for a while has lost the connection, though nobody told it.
  #watch() {
    clearTimeout(this.#watchdog);
    this.#watchdog = setTimeout(() => this.#lost('nothing came for 5 s'), silence);
  }

  // Lets go of the connection: nothing more of it counts.
  #leave() {
    clearTimeout(this.#watchdog);
    const socket = this.#socket;
    this.#socket = undefined;
    try { socket?.close(1000); } catch { /* it had not opened */ }
  }

  #lost(why, least = 0) {
    this.#leave();
    if (this.#closed) return;
    const wait = Math.max(least, this.#pause / 2 + Math.random() * this.#pause);
    this.#pause = Math.min(2 * this.#pause, mostPause);
    this.#retry = setTimeout(() => this.#connect(), wait);
    this.#tell('disconnected', why, wait); // which may close the stream, or connect at once
  }

  // Says what the stream wants: to go on where it was, or to begin.
  #open() {
    this.connections++;
    if (this.#known && this.#parts.length === 0) this.#resume();
    else this.#ask();
  }

  // Asks for the first part of the names, or where there are none, where the node stands.
  #ask() {
    this.#answered = 0;
    this.#awaits = this.#parts.length > 0 ? 'subscribed' : 'pong';
    if (this.#parts.length > 0) this.#subscribe();
    else this.#say({ type: 'ping', id: 3 });
  }

  // Names the next part, once the one before was answered in full: so frames come in the order of the ledger.
  #subscribe() {
    const part = this.#parts[this.#answered];
    const { data_size, memcmp } = part.programs ? this.#wants : {};
    this.#say({ type: 'subscribe', id: 1, ...part, data_size, memcmp, snapshot: !this.#known });
  }

  #resume() {
    this.#awaits = 'resumed'; // what comes before comes again
    this.#socket.send(`{"type":"resume","id":2,"from_seq":${this.seq}}`);
  }

  #take(text) {
    this.#watch();
    const frame = parse(text);
    switch (frame.type) {
      case 'error':
        this.#fail(new StatusError(400, frame.error, frame.details, 0));
        return;
      case 'resync_required':
        this.#known = false;
        this.#ask();
        return;
      case 'subscribed':
        this.#subscribed(frame);
        return;
      case this.#awaits:
        this.#answer(frame);
        return;
      case 'resumed': case 'pong':
        return;
    }
    if (this.#awaits === '' && !this.#again(frame, text)) this.#hand(frame);
  }

  // Takes in the answer from which on frames count.
  #answer(frame) {
    this.#pause = leastPause;
    this.#awaits = '';
    if (frame.type === 'resumed') {
      this.#same.restoring = true;
      this.#tell('resumed', frame.from_seq);
    } else {
      this.#known = true;
      this.#begin(frame, false);
    }
  }

  // Takes in that the node tells of a part of the names. Of a stream that begins the snapshot of that part follows.
  #subscribed(frame) {
    const last = ++this.#answered === this.#parts.length;
    if (this.#known) {
      if (last) this.#resume();
      else this.#subscribe();
      return;
    }
    if (last) this.#pause = leastPause;
    this.#awaits = '';
    this.#listing = true;
    if (this.#answered === 1) this.#begin(frame, true);
    this.#reach(frame.seq); // all that came before was told of the parts before, and is in the snapshot of this one
  }

  #begin({ slot, seq }, snapshot) {
    this.seq = seq;
    this.#same = new Same();
    this.#tell('start', { slot, seq, snapshot });
  }

  #reach(seq) {
    if (seq <= this.seq) return;
    this.seq = seq;
    this.#same = new Same();
  }

  // Whether a frame was told before: those that carry the very number that a resume went on from come again.
  #again(frame, text) {
    if (this.#listing || frame.seq === undefined) return false;
    this.#reach(frame.seq);
    return frame.seq === this.seq && frame.type !== 'heartbeat' && !this.#same.add(frame, text);
  }

  #hand(frame) {
    switch (frame.type) {
      case 'account_update': this.#tell('update', frame); break;
      case 'rollback': this.#tell('rollback', frame); break;
      case 'slot_end': this.#tell('slotEnd', frame); break;
      case 'gap': this.#tell('gap', frame); break;
      case 'heartbeat': this.#tell('heartbeat', frame); break;
      case 'snapshot_end':
        this.#listing = false;
        this.#known = this.#answered === this.#parts.length;
        if (this.#known) this.#tell('ready');
        else this.#subscribe();
    }
  }
}
