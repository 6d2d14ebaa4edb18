// The newest transactions, page by page, and the page of a single one.

import { client } from './api.js';
import { cell, facts, h, table } from './dom.js';
import { accountLink, age, blockLink, moment, number, transactionLink } from './format.js';
import { commands, curl, rpc } from './curl.js';
import { followed, paged, refusal } from './page.js';

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

// Where a transaction is in its block.
function neighbours({ signatures }, at) {
  const link = (to, text) => to !== undefined && h('a', { href: `#/tx/${to}`, class: 'button' }, text);
  return h('nav.row', { 'aria-label': 'Neighbours' }, link(signatures[at - 1], '← before'),
    h('span.quiet', `${number(at + 1)} of ${number(signatures.length)} in its block`), link(signatures[at + 1], 'after →'));
}

/** @param {AbortSignal} signal @param {string} signature */
export function transactionPage(signal, signature) {
  const ask = async () => {
    const { value } = await client.transaction(signature, { signal });
    const block = await client.block(value.slot, { include: 'signatures', signal }).catch((error) => {
      if (error.status !== 404) throw error;
    });
    const at = block?.value.signatures.indexOf(signature) ?? -1; // a fork may have come between the two questions
    const found = at < 0 ? { level: '' } : { id: block.value.blockhash, level: block.value.commitment, nav: neighbours(block.value, at) };
    return { ...found, slot: value.slot, value };
  };
  const show = ({ value, nav }, level) => [
    facts(['slot', blockLink(value.slot)], ['result', result(value.success)], ['fee', value.fee === null ? 'not recorded' : `${number(value.fee)} lamports`],
      ['time', moment(value.timestamp)], ['commitment', level]),
    nav,
    h('section', h('h2', `${value.accounts.length} accounts`), h('ol.keys', value.accounts.map((key) => h('li', accountLink(key))))),
  ].filter(Boolean);
  const from = (error) => (error.status === 404 ? 0n : undefined); // any block may bring it
  return {
    title: 'Transaction',
    element: h('div', h('h1', 'Transaction'), h('p.name', h('code', signature)),
      followed(ask, show, signal, refusal, from), commands(curl(`/transaction/${signature}`),
        rpc('getSignatureStatuses', `[["${signature}"],{"searchTransactionHistory":true}]`))),
  };
}
