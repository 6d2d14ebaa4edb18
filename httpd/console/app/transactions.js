// The newest transactions, page by page, and the page of a single one.

import { client } from './api.js';
import { cell, facts, h, table } from './dom.js';
import { accountLink, age, blockLink, moment, number, transactionLink } from './format.js';
import { commands, curl, rpc } from './curl.js';
import { asked, atEachLevel, badge, paged } from './page.js';

const pageSize = 50;
const commitment = 'confirmed'; // a page that ends in a block that is undone would have no next one

export const transactionHeadings = ['signature', 'result', '-fee, lamports>', '-accounts>', 'slot>', 'age>'];

export function transactionRow(record) {
  return h('tr', { 'data-key': record.signature, class: record.success === false && 'failed' }, h('td', transactionLink(record.signature)), h('td', result(record.success)),
    cell(record.fee === null ? '–' : number(record.fee)), cell(record.accounts.length), cell(blockLink(record.slot)), cell(age(record.timestamp)));
}

const result = (success) => (success === null ? 'not known' : success ? h('span.quiet', 'success') : h('span.badge.bad', 'failed'));

/** @param {AbortSignal} signal */
export function recentPage(signal) {
  const ask = async (before) => {
    const { value } = await client.recent({ limit: pageSize, before, commitment, signal });
    return { rows: value.transactions.map(transactionRow), next: value.next_before };
  };
  return {
    title: 'Transactions',
    element: h('div', h('h1', 'Newest confirmed transactions'), paged(ask, (body) => table('Newest transactions', transactionHeadings, body), 'no transactions', signal),
      commands(curl(`/transactions/recent?limit=${pageSize}&commitment=${commitment}`))),
  };
}

// The level of a transaction, and those before and after it in its block, once the node has told them.
function inBlock({ slot, signature }, shown, signal) {
  const [level, place] = [h('span', '…'), h('nav.row', { 'aria-label': 'Neighbours' })];
  client.block(slot, { include: 'signatures', signal }).then(({ value: { signatures, commitment: reached } }) => {
    shown(slot, reached);
    level.replaceChildren(badge(reached));
    const at = signatures.indexOf(signature);
    const link = (to, text) => to !== undefined && h('a', { href: `#/tx/${to}`, class: 'button' }, text);
    if (at >= 0) place.append(...[link(signatures[at - 1], '← before'), h('span.quiet', `${number(at + 1)} of ${number(signatures.length)} in its block`), link(signatures[at + 1], 'after →')].filter(Boolean));
  }, () => level.replaceChildren('not known')); // the transaction is all there is to show then
  return { level, place };
}

/** @param {AbortSignal} signal @param {string} signature */
export function transactionPage(signal, signature) {
  const place = h('div');
  const show = (value, { level, place: neighbours }) => [
    facts(['slot', blockLink(value.slot)], ['result', result(value.success)], ['fee', value.fee === null ? 'not recorded' : `${number(value.fee)} lamports`],
      ['time', moment(value.timestamp)], ['commitment', level]),
    neighbours,
    h('section', h('h2', `${value.accounts.length} accounts`), h('ol.keys', value.accounts.map((key) => h('li', accountLink(key))))),
  ];
  atEachLevel((shown) => place.replaceChildren(asked(() => client.transaction(signature, { signal }),
    ({ value }) => show(value, inBlock(value, shown, signal)), signal)), signal);
  return {
    title: 'Transaction',
    element: h('div', h('h1', 'Transaction'), h('p.name', h('code', signature)),
      place, commands(curl(`/transaction/${signature}`),
        rpc('getSignatureStatuses', `[["${signature}"],{"searchTransactionHistory":true}]`))),
  };
}
