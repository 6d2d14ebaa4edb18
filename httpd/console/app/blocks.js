// The newest blocks, as the pulse of the node tells them.

import { h, table } from '/console/dom.js';
import { blockLink, duration, number } from '/console/format.js';
import { curl, commands } from '/console/curl.js';
import { span } from '/console/forktree.js';
import { tree } from '/console/pulse.js';

const drawEvery = 500; // ms

/** @param {AbortSignal} signal */
export function blocksPage(signal) {
  const body = h('tbody');
  const list = table(`The blocks of the last ${span} slots, newest first`, ['slot', 'state', 'parent', 'updates>', 'came>'], body);
  const draw = () => {
    if (list.matches(':hover, :focus-within')) return; // what is aimed at stays
    const rows = tree.visible().reverse().map((block) => h('tr', { class: block.undone && 'failed' }, h('td', {}, blockLink(block.slot)),
      h('td', {}, h('span', { class: `badge ${tree.state(block)}` }, tree.state(block))), h('td', {}, block.parent ? blockLink(block.parent.slot) : 'not known'),
      h('td', { class: 'number' }, block.updates === null ? '–' : number(block.updates)), h('td', { class: 'number' }, `${duration(Date.now() - block.at)} ago`)));
    body.replaceChildren(...(rows.length > 0 ? rows : [h('tr', {}, h('td', { colspan: 5, class: 'quiet' }, 'The list begins with the next block.'))]));
  };
  const timer = setInterval(draw, drawEvery);
  signal.addEventListener('abort', () => clearInterval(timer));
  draw();
  return {
    title: 'Blocks',
    element: h('div', {}, h('h1', {}, 'Newest blocks'), list, commands(curl('/blocks/latest'), curl('/blocks/latest?include=transactions'))),
  };
}
