// The page of an account: its record, what it holds, and its changes as they happen.

import { client } from '/console/api.js';
import { facts, h, say, table } from '/console/dom.js';
import { accountLink, amount, blockLink, number } from '/console/format.js';
import { commands, curl, wscat } from '/console/curl.js';
import { asked, paged, refusal } from '/console/page.js';
import { transactionHeadings, transactionRow } from '/console/transactions.js';
import { Updates } from '/console/updates.js';

const pageSize = 25;
const shownBytes = 512; // of data

/** @param {AbortSignal} signal @param {string} key */
export function accountPage(signal, key) {
  const lamports = h('b', { class: 'balance' }, '–');
  const asOf = h('span', { class: 'quiet' });
  let live = -1n; // the slot of the newest balance that the stream told: it comes in order, rollbacks included, and wins over an older answer

  function balance(amountNow, slot) {
    say(lamports, number(amountNow));
    asOf.replaceChildren(` lamports · ${amount(String(amountNow), 9)} SOL · as of slot `, blockLink(slot));
  }

  function changed({ lamports: amountNow, slot }) {
    live = slot;
    balance(amountNow, slot);
  }

  const show = ({ value, slot, partial }) => {
    if (slot > live) balance(value.lamports, slot);
    const unknown = (name, text) => (partial.includes(name) ? 'not told by the source' : text);
    return [
      facts(['owner', unknown('owner', accountLink(value.owner))], ['executable', unknown('executable', value.executable ? 'yes' : 'no')],
        ['rent epoch', unknown('rent_epoch', number(value.rent_epoch))]),
      value.token && tokenFacts(value.token), value.mint && mintFacts(value.mint), value.data && dataBytes(value), value.executable && owned(key, signal),
    ].filter(Boolean);
  };
  const absent = (error) => (error.status === 404 ? h('p', { class: 'refusal' }, h('strong', {}, `${error.details}. `), 'Its tokens and changes are shown all the same.') : refusal(error));
  return {
    title: 'Account',
    element: h('div', {}, h('h1', {}, 'Account'), h('p', { class: 'name' }, h('code', {}, key)), h('p', {}, lamports, asOf),
      asked(() => client.account(key, { include: 'token,data', data_slice: `0,${shownBytes}`, signal }), show, signal, absent),
      tokens(key, signal), history(key, signal), changes(key, changed, signal),
      commands(curl(`/account/${key}?include=token,data`), curl(`/account/${key}/tokens?limit=${pageSize}`), curl(`/account/${key}/transactions?limit=${pageSize}`), wscat(`?wallets=${key}&extended=true&tokens=true`))),
  };
}

// What a token account holds. A mint that scales its amounts has no simple decimals, and so no ui_amount.
const holds = (token) => amount(token.amount, token.ui_amount === null ? null : token.decimals);

const tokenFacts = (token) => h('section', {}, h('h2', {}, 'Token account'), facts(['holds', holds(token)], ['mint', accountLink(token.mint)],
  ['wallet', accountLink(token.owner)], ['state', token.state ?? 'not known'], ['native', token.is_native ? 'yes' : null], ['delegate', token.delegate && accountLink(token.delegate)],
  ['delegated', token.delegate && amount(token.delegated_amount, token.decimals)], ['close authority', token.close_authority && accountLink(token.close_authority)]));

const mintFacts = (mint) => h('section', {}, h('h2', {}, 'Mint'), facts(['supply', mint.supply === null ? 'not known' : amount(mint.supply, mint.decimals)], ['decimals', mint.decimals]));

// The first bytes of the data of an account, in hexadecimal.
function dataBytes({ space, data }) {
  const bytes = [...atob(data)].map((c) => c.charCodeAt(0).toString(16).padStart(2, '0'));
  const more = space > shownBytes ? `, the first ${shownBytes}` : '';
  return h('section', { id: 'data' }, h('h2', {}, 'Data'), h('p', { class: 'quiet' }, `${number(space)} bytes${more}`), h('p', { class: 'name' }, h('code', {}, bytes.join(' '))));
}

// The token accounts of a wallet.
function tokens(key, signal) {
  const row = (token) => h('tr', {}, h('td', {}, accountLink(token.token_account, true)), h('td', {}, accountLink(token.mint, true)),
    h('td', { class: 'number' }, holds(token)), h('td', {}, token.state ?? '–'));
  const ask = async (cursor) => {
    const { value } = await client.tokens(key, { limit: pageSize, cursor, signal });
    return { rows: value.tokens.map(row), next: value.next_cursor };
  };
  const frame = (body) => table('Token accounts of this wallet', ['token account', 'mint', 'amount>', 'state'], body);
  return h('section', { id: 'tokens' }, h('h2', {}, 'Tokens'), paged(ask, frame, 'It has no token accounts.', signal));
}

// The transactions that name an address. They are confirmed: a page that ends in a block that is undone would have no next one.
function history(key, signal) {
  const ask = async (before) => {
    const { value } = await client.transactions(key, { limit: pageSize, before, commitment: 'confirmed', signal });
    return { rows: value.transactions.map(transactionRow), next: value.next_before };
  };
  const frame = (body) => table('Transactions that name this address', transactionHeadings, body);
  return h('section', { id: 'history' }, h('h2', {}, 'Transactions'), paged(ask, frame, 'No transaction that is held names it.', signal, true));
}

// The accounts that a program owns.
function owned(key, signal) {
  const row = (account) => h('tr', {}, h('td', {}, accountLink(account.pubkey)), h('td', { class: 'number' }, number(account.lamports)));
  const ask = async (cursor) => {
    const { value } = await client.program(key, { limit: pageSize, cursor, signal });
    return { rows: value.accounts.map(row), next: value.next_cursor };
  };
  const frame = (body) => table('Accounts of this program', ['account', 'lamports>'], body);
  return h('section', { id: 'owned' }, h('h2', {}, 'Accounts of this program'), paged(ask, frame, 'It owns no accounts.', signal),
    curl(`/accounts/program/${key}?limit=${pageSize}`));
}

// The live changes of an account and of the token accounts of a wallet.
function changes(key, changed, signal) {
  const updates = new Updates('Live changes of this account', 'The next change appears here.', signal);
  const state = h('span', { class: 'quiet' }, 'connecting');
  let listing = false;
  const stream = client.stream({ pubkeys: [key], wallets: [key], tokens: true }, {
    start({ snapshot }) {
      listing = snapshot;
      updates.clear();
      say(state, 'live');
    },
    ready() { listing = false; },
    update(update) {
      if (update.pubkey === key) changed(update);
      if (listing) updates.know(update);
      else updates.add(update);
    },
    rollback({ from_slot: from, to_slot: to }) { updates.mark(`rollback: slot ${number(from)} is undone back to ${number(to)}`); },
    resumed() { say(state, 'live, resumed'); },
    disconnected(why) { say(state, `away: ${why}`); },
    failed(error) { say(state, error.message); },
  });
  signal.addEventListener('abort', () => stream.close());
  return h('section', { id: 'changes', 'aria-labelledby': 'changes-title' }, h('div', { class: 'row' }, h('h2', { id: 'changes-title' }, 'Live changes'), state), updates.element);
}
