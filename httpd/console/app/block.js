// The page of a slot: its block, or why there is none.

import { client } from './api.js';
import { facts, h, table } from './dom.js';
import { blockLink, moment, number } from './format.js';
import { commands, curl, rpc } from './curl.js';
import { followed, refusal } from './page.js';
import { transactionRow, transactionHeadings } from './transactions.js';

const atFirst = 50; // transactions shown before somebody asks for all

/** @param {AbortSignal} signal @param {string} text */
export function blockPage(signal, text) {
  const slot = BigInt(text);
  const ask = async () => {
    const { value: block } = await client.block(slot, { include: 'transactions', signal });
    return { id: block.blockhash, slot, level: block.commitment, block };
  };
  const show = ({ block }, level) => [
    facts(['blockhash', h('code', block.blockhash)], ['parent', blockLink(block.parent_slot)],
      ['previous blockhash', h('code', block.previous_blockhash ?? 'not known')], ['height', block.block_height === null ? 'not known' : number(block.block_height)],
      ['time', moment(block.timestamp)], ['commitment', level]),
    transactions(block),
  ];

  function absent(error) {
    const state = error.details.match(/^slot (skipped|not yet produced|pruned|not indexed)/)?.[1];
    return state ? h('p.refusal', h('strong', `This slot is ${state}. `), explained[state]) : refusal(error);
  }

  const from = (error) => (error.details.startsWith('slot not yet produced') ? slot : undefined);
  return {
    title: `Slot ${number(slot)}`,
    element: h('div', h('div.row', h('h1', `Slot ${number(slot)}`), neighbours(slot)), followed(ask, show, signal, absent, from), commands(curl(`/blocks/${slot}?include=transactions`),
      rpc('getBlock', `[${slot},{"commitment":"confirmed","transactionDetails":"accounts"}]`))),
  };
}

const explained = {
  skipped: 'The chain has no block here: the one after it names an older one as its parent.',
  'not yet produced': 'This page shows the block when it comes.',
  pruned: 'It was held once, and is older than what this node retains.',
  'not indexed': 'It is from before this node began, or from a gap in its source.',
};

const neighbours = (slot) => h('nav.tools', { 'aria-label': 'Neighbours' },
  slot > 0n && h('a', { href: `#/block/${slot - 1n}`, class: 'button' }, `← ${number(slot - 1n)}`), h('a', { href: `#/block/${slot + 1n}`, class: 'button' }, `${number(slot + 1n)} →`));

function transactions(block) {
  const records = block.transaction_records;
  const body = h('tbody', records.slice(0, atFirst).map(transactionRow));
  const rest = h('button', { type: 'button', hidden: records.length <= atFirst, onclick: () => {
    body.append(...records.slice(atFirst).map(transactionRow));
    rest.remove();
  } }, `All ${number(records.length)}`);
  return h('section', h('h2', `${number(block.transactions)} transactions`), table('Transactions of this block', transactionHeadings, body), rest);
}
