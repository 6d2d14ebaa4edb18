// The newest blocks, as the pulse of the node tells them.

import { cell, every, h, table } from './dom.js';
import { blockLink, duration, number } from './format.js';
import { curl, commands } from './curl.js';
import { span } from './forktree.js';
import { badge } from './page.js';
import { tree } from './pulse.js';

/** @param {AbortSignal} signal */
export function blocksPage(signal) {
  const body = h('tbody');
  const list = table(`The blocks of the last ${span} slots, newest first`, ['slot', 'state', '-parent', 'updates>', 'came>'], body);
  const draw = () => {
    if (list.matches(':hover, :focus-within')) return; // what is aimed at stays
    const rows = tree.visible().reverse().map((block) => h('tr', { class: block.undone && 'failed' }, h('td', blockLink(block.slot)),
      h('td', badge(tree.state(block))), h('td', block.parent ? blockLink(block.parent.slot) : 'not known'),
      cell(block.updates === null ? '–' : number(block.updates)), cell(block.at === null ? '–' : `${duration(Date.now() - block.at)} ago`)));
    body.replaceChildren(...(rows.length > 0 ? rows : [h('tr', h('td', { colspan: 5 }, 'The list begins with the next block.'))]));
  };
  every(500, draw, signal);
  return {
    title: 'Blocks',
    element: h('div', h('h1', 'Newest blocks'), list, h('p.quiet', 'When a block came is known of those that came while this page followed the node.'),
      commands(curl('/blocks/latest'), curl('/blocks/latest?include=transactions'))),
  };
}
