// The page of an account: its record, what it holds, and its changes as they happen.

import { StatusError } from '/client/ledgerd.js';
import { budget, client } from './api.js';
import { cell, entitle, facts, h, say, table } from './dom.js';
import { accountLink, amount, blockLink, number } from './format.js';
import { commands, curl, rpc, wscat } from './curl.js';
import { nameOf } from './names.js';
import { asked, follow, paged, refusal } from './page.js';
import { figures } from './pulse.js';
import { transactionHeadings, transactionRow } from './transactions.js';
import { Updates } from './updates.js';

const pageSize = 25;
const shownBytes = 512; // of data
const exempt = 2n ** 64n - 1n; // the rent epoch of an account that never pays rent
const holdersRest = 10_000; // ms at least between two questions for them, each of which goes through all token accounts of the mint

/** @param {AbortSignal} signal @param {string} key */
export function accountPage(signal, key) {
  const name = nameOf(key);
  const heading = h('h1', name ?? 'Account');
  const what = h('span.quiet'); // beside a name
  const sol = h('b.balance', '–');
  const asOf = h('span.quiet');
  let live = -1n; // the slot of the newest balance that the stream told: it comes in order, rollbacks included, and wins over an older answer

  function balance(amountNow, slot) {
    say(sol, `${amount(String(amountNow), 9)} SOL`);
    asOf.replaceChildren(`${number(amountNow)} lamports · as of slot `, blockLink(slot));
  }

  // The page is that of what the account has turned out to be.
  function be(kind) {
    element.dataset.kind = kind;
    if (name) say(what, kind);
    else say(heading, kind);
    entitle(name ?? kind);
  }

  function changed({ lamports: amountNow, slot }) {
    live = slot;
    balance(amountNow, slot);
  }

  const show = ({ value, slot, partial }) => {
    if (slot > live) balance(value.lamports, slot);
    be(value.mint ? 'Mint' : value.token ? 'Token account' : value.executable ? 'Program' : 'Account');
    const unknown = (name, text) => (partial.includes(name) ? 'not told by the source' : text);
    return [
      facts(...holding(value.token), ...issuing(value.mint), ['owner', unknown('owner', accountLink(value.owner))], ['executable', unknown('executable', value.executable ? 'yes' : 'no')],
        ['rent epoch', unknown('rent_epoch', value.rent_epoch === exempt ? 'exempt' : number(value.rent_epoch))]),
      value.mint && holders(key, value.mint, signal), value.data && dataBytes(value),
      value.executable && owned(key, signal),
    ].filter(Boolean);
  };
  const absent = (error) => {
    be('Account');
    if (live < 0n) say(sol, '');
    return error.status === 404 ? h('p.refusal', h('strong', `${error.details}. `), 'Its tokens and changes are shown all the same.') : refusal(error);
  };
  const element = h('div', h('div.row', heading, what), h('p.name', h('code', key)), h('div.row', sol, asOf),
    asked(() => client.account(key, { include: 'token,data', data_slice: `0,${shownBytes}`, signal }), show, signal, absent),
    tokens(key, signal), history(key, signal), changes(key, changed, signal),
    commands(curl(`/account/${key}?include=token,data`), curl(`/account/${key}/tokens?limit=${pageSize}`), curl(`/account/${key}/transactions?limit=${pageSize}`), wscat(`?wallets=${key}&extended=true&tokens=true`),
      rpc('getAccountInfo', `["${key}",{"encoding":"jsonParsed","dataSlice":{"offset":0,"length":0}}]`), rpc('getSignaturesForAddress', `["${key}",{"limit":${pageSize}}]`)));
  return { title: name ?? 'Account', element };
}

// What a token account holds. A mint that scales its amounts has no simple decimals, and so no ui_amount.
const holds = (token) => amount(token.amount, token.ui_amount === null ? null : token.decimals);

const holding = (token) => (token ? [['holds', holds(token)], ['mint', accountLink(token.mint)],
  ['wallet', accountLink(token.owner)], ['state', token.state ?? 'not known'], ['native', token.is_native ? 'yes' : null], ['delegate', token.delegate && accountLink(token.delegate)],
  ['delegated', token.delegate && amount(token.delegated_amount, token.decimals)], ['close authority', token.close_authority && accountLink(token.close_authority)]] : []);

const issuing = (mint) => (mint ? [['supply', mint.supply === null ? 'not known' : amount(mint.supply, mint.decimals)], ['decimals', mint.decimals]] : []);

// Who holds most of a mint. Of one that many hold, a question takes many requests of the budget, or more time than the node has: so none is asked
// again at once, and the next one waits as long as it would take to poll as often.
function holders(key, { decimals }, signal) {
  const show = ({ value: { holders: all } }) => {
    if (all.length === 0) return h('p.quiet', 'No account that is held holds any of it. Who does is listed here, the largest first.');
    const rows = all.map(({ pubkey, token }) => h('tr', h('td', accountLink(pubkey)), h('td', accountLink(token.owner)), cell(amount(token.amount, decimals))));
    return [table('Holders of this mint, largest first', ['token account', 'wallet', 'amount>'], h('tbody', rows)),
      h('p.quiet', rows.length < pageSize ? `all ${rows.length}` : `the largest ${rows.length}`)];
  };
  let next = Infinity; // when to ask again
  const ask = async () => {
    next = Infinity;
    const { remaining } = budget;
    try {
      return await client.holders(key, { limit: pageSize, signal });
    } catch (error) {
      throw error instanceof StatusError ? new StatusError(error.status, error.text, error.details, 0) : error;
    } finally {
      next = Date.now() + Math.max(holdersRest, budget.rest(remaining));
    }
  };
  const place = asked(ask, show, signal, (error) => {
    if (error.status !== 404) return refusal(error);
    next = Infinity;
    return h('p.quiet', 'This node does not list who holds a mint, which takes --index-mints.');
  });
  follow(async () => {
    if (Date.now() >= next && !place.matches(':focus-within')) place.replaceChildren(...[show(await ask())].flat());
  }, signal);
  return h('section', { id: 'holders' }, h('h2', 'Holders'), place, curl(`/account/${key}/holders?limit=${pageSize}`));
}

// The first bytes of the data of an account, in hexadecimal and as text.
function dataBytes({ space, data }) {
  const bytes = [...atob(data)].map((c) => c.charCodeAt(0));
  const lines = [];
  const lineBytes = innerWidth < 600 ? 8 : 16;
  for (let at = 0; at < bytes.length; at += lineBytes) {
    const line = bytes.slice(at, at + lineBytes);
    const text = line.map((byte) => (byte > 32 && byte < 127 ? String.fromCharCode(byte) : '·')).join('');
    lines.push(`${String(at).padStart(6)}  ${line.map((byte) => byte.toString(16).padStart(2, '0')).join(' ').padEnd(3 * lineBytes)} ${text}`);
  }
  const more = space > shownBytes ? `, the first ${shownBytes}` : '';
  return h('section', { id: 'data' }, h('h2', 'Data'), h('p.quiet', `${number(space)} bytes${more}`),
    h('pre.hex', { tabindex: 0, role: 'region', 'aria-label': 'Data, in hexadecimal' }, lines.join('\n')));
}

// A list that comes in pages, of what each answer has under a name. One of transactions goes on before the last of them.
const listed = (ask, name, row, caption, headings, empty, signal, live) => paged(async (cursor) => {
  const { value } = await ask({ limit: pageSize, [name === 'transactions' ? 'before' : 'cursor']: cursor, signal });
  return { rows: value[name].map(row), next: value.next_cursor ?? value.next_before ?? null };
}, (body) => table(caption, headings, body), empty, signal, live);

// The token accounts of a wallet.
function tokens(key, signal) {
  const row = (token) => h('tr', h('td', accountLink(token.token_account)), h('td', accountLink(token.mint)),
    cell(holds(token)), h('td', token.state ?? '–'));
  return h('section', { id: 'tokens' }, h('h2', 'Tokens'), listed((read) => client.tokens(key, read), 'tokens', row,
    'Token accounts of this wallet', ['token account', 'mint', 'amount>', '-state'], 'No token account that is held names it as its wallet.', signal));
}

// The transactions that name an address. They are confirmed: a page that ends in a block that is undone would have no next one.
function history(key, signal) {
  return h('section', { id: 'history' }, h('h2', 'Transactions'), listed((read) => client.transactions(key, { ...read, commitment: 'confirmed' }), 'transactions', transactionRow,
    'Transactions that name this address', transactionHeadings, 'No transaction that is held names it.', signal, true));
}

// The accounts that a program owns.
function owned(key, signal) {
  const row = (account) => h('tr', h('td', accountLink(account.pubkey)), cell(amount(String(account.lamports), 9)));
  return h('section', { id: 'owned' }, h('h2', 'Accounts of this program'), h('div', { id: 'owned-list' }, listed((read) => client.program(key, read), 'accounts', row,
    'Accounts of this program', ['account', 'SOL>'], 'It owns no account that is held.', signal)),
    curl(`/accounts/program/${key}?limit=${pageSize}`), ownedChanges(key, signal));
}

// The live changes of the accounts of a program. It begins where the node stands, without the states of all of them.
function ownedChanges(key, signal) {
  const updates = new Updates('Live changes of the accounts of this program', 'The next change of one of its accounts appears here.', signal);
  const state = h('span.quiet', 'connecting');
  const follow = () => {
    if (!figures.now.has('ledgerd_seq')) return; // it is not known yet where the node stands
    figures.removeEventListener('polled', follow);
    const stream = client.stream({ programs: [key], tokens: true, conflate: true, after: BigInt(figures.now.get('ledgerd_seq')) }, {
      ...shown(updates, state),
      heartbeat() { say(state, `live${updates.beat()}`); },
    });
    signal.addEventListener('abort', () => stream.close());
  };
  figures.addEventListener('polled', follow, { signal });
  follow();
  return h('section', h('div.row', h('h2', 'Live changes of its accounts'), state), updates.element);
}

// What a stream tells goes into a list, and how it fares into a line. The states of a snapshot are remembered, and are no rows.
function shown(updates, state, taken = () => {}) {
  let listing = false;
  return {
    start({ snapshot }) {
      listing = snapshot;
      updates.clear();
      say(state, 'live');
    },
    ready() { listing = false; },
    update(update) {
      taken(update);
      if (listing) updates.know(update);
      else updates.add(update);
    },
    slotEnd() { updates.end(); },
    rollback({ from_slot: from, to_slot: to }) {
      if (!updates.empty) updates.mark(`rollback: slot ${number(from)} is undone back to ${number(to)}`);
    },
    resumed() { say(state, 'live, resumed'); },
    disconnected(why) { say(state, `away: ${why}`); },
    failed(error) { say(state, error.message); },
  };
}

// The live changes of an account and of the token accounts of a wallet.
function changes(key, changed, signal) {
  const updates = new Updates('Live changes of this account', 'The next change of its lamports, data or tokens appears here.', signal);
  const state = h('span.quiet', 'connecting');
  const stream = client.stream({ pubkeys: [key], wallets: [key], tokens: true }, shown(updates, state, (update) => { if (update.pubkey === key) changed(update); }));
  signal.addEventListener('abort', () => stream.close());
  return h('section', { id: 'changes' }, h('div.row', h('h2', 'Live changes'), state), updates.element);
}
