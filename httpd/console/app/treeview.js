// Draws the tree of blocks. A column is a slot; the chain runs along the top lane, and what was undone hangs below it and fades.

import { h, s, say } from './dom.js';
import { number, blockLink } from './format.js';
import { span } from './forktree.js';

const chainY = 34; // of the chain's lane, in pixels
const laneHeight = 26;
const lanes = 2; // below the chain; more branches than that share the last one
const margin = 14;

/** @param {import('/console/forktree.js').ForkTree} tree @param {AbortSignal} signal */
export function treeView(tree, signal) {
  const edges = s('g', { class: 'edges' });
  const marks = s('g', { class: 'marks' });
  const nodes = s('g', { class: 'nodes' });
  const world = s('g', { class: 'world' }, edges, marks, nodes);
  const picture = s('svg', { class: 'tree', role: 'img', 'aria-label': 'Blocks: none was told yet', height: chainY + lanes * laneHeight + 8 }, world);
  const list = h('ul.slots');
  const words = h('details', h('summary', 'The same as a list'), list);
  const shown = new Map(); // elements of blocks by their ids
  let first = 0n; // the slot at x = 0
  let width = 0;

  picture.addEventListener('click', ({ target }) => {
    const slot = target.closest('[data-slot]')?.dataset.slot;
    if (slot) location.hash = `#/block/${slot}`;
  });

  const step = () => Math.max(6, (width - 2 * margin) / span); // with room for the next slot, which slides in
  const x = (slot) => Number(slot - first) * step();

  function draw() {
    const blocks = tree.visible();
    if (blocks.length === 0 || width === 0) return;
    const newest = blocks.at(-1).slot;
    const moved = first === 0n || newest - first > 5000n; // keeps coordinates small, where they are exact
    if (moved) first = newest - BigInt(span - 1);
    world.classList.toggle('still', moved);
    world.style.transform = `translateX(${margin - x(newest - BigInt(span - 1))}px)`;
    const y = placed(blocks);
    const radius = Math.min(6.5, step() * 0.34);

    const ids = new Set(blocks.map(({ id }) => id));
    for (const [id, element] of shown) if (!ids.has(id)) shown.delete(id), element.remove();
    for (const block of blocks) {
      let element = shown.get(block.id);
      if (!element) {
        element = s('g', { 'data-slot': block.slot }, s('title'), s('circle', { class: 'reach', r: 11 }), s('circle', { class: 'dot' }));
        shown.set(block.id, element);
        nodes.append(element);
      }
      const state = tree.state(block);
      element.setAttribute('class', `block ${state}${block === tree.tip ? ' tip' : ''}`);
      element.style.transform = `translate(${x(block.slot)}px, ${y.get(block)}px)`;
      element.lastChild.setAttribute('r', radius);
      say(element.firstChild, `slot ${number(block.slot)}, ${state}`);
    }
    edges.replaceChildren(...blocks.filter(({ parent }) => parent).map((block) => edge(block, y)));
    const skipped = tree.skipped(newest - BigInt(span - 1));
    marks.replaceChildren(...skipped.map((slot) => s('g', { class: 'skipped', 'data-slot': slot },
      s('title', {}, `slot ${number(slot)}, skipped`), s('circle', { class: 'reach', cx: x(slot), cy: chainY, r: 11 }),
      s('path', { d: `M${x(slot) - 3} ${chainY - 3}l6 6m0 -6l-6 6` }))), ...scale(newest, blocks[0].slot));
    const undone = blocks.filter((block) => block.undone).length;
    picture.ariaLabel = `Blocks of the last ${span} slots, up to ${number(tree.tip.slot)}: `
      + `${blocks.length - undone} on the chain, ${undone} undone, ${skipped.length} slots skipped.`;
    if (words.open && !list.matches(':hover, :focus-within')) listed(blocks, skipped);
  }

  // The lane of each block, as its y. A branch keeps the lane of its first block.
  function placed(blocks) {
    const y = new Map();
    const ends = Array(lanes).fill(-1n); // the newest slot in each lane
    for (const block of blocks) {
      if (!block.undone) {
        y.set(block, chainY);
        continue;
      }
      const parents = block.parent?.undone ? y.get(block.parent) : undefined;
      let lane = parents === undefined ? ends.findIndex((end) => end < (block.parent?.slot ?? block.slot)) : (parents - chainY) / laneHeight - 1;
      if (lane < 0) lane = lanes - 1;
      ends[lane] = block.slot;
      y.set(block, chainY + (lane + 1) * laneHeight);
    }
    return y;
  }

  function edge(block, y) {
    const [toX, toY, fromX] = [x(block.slot), y.get(block), x(block.parent.slot)];
    const fromY = y.get(block.parent) ?? (block.parent.undone ? toY : chainY);
    const bend = Math.min(step(), toX - fromX);
    return s('path', { class: `edge ${tree.state(block)}`, d: `M${fromX} ${fromY}C${fromX + bend / 2} ${fromY} ${fromX + bend / 2} ${toY} ${fromX + bend} ${toY}H${toX}` });
  }

  function scale(newest, oldest) {
    const every = step() < 12 ? 10n : 5n;
    const labels = [];
    for (let slot = newest - (newest % every); slot >= oldest; slot -= every) {
      const end = newest - slot < 2n ? 'end' : 'middle';
      labels.push(s('text', { x: x(slot), y: 12, 'text-anchor': end }, number(slot)));
    }
    return labels;
  }

  function listed(blocks, skipped) {
    const rows = [...blocks.map((block) => [block.slot, tree.state(block)]), ...skipped.map((slot) => [slot, 'skipped'])];
    rows.sort(([a], [b]) => (a < b ? 1 : -1));
    list.replaceChildren(...rows.map(([slot, state]) => h('li', blockLink(slot), ` ${state}`)));
  }

  words.addEventListener('toggle', draw);
  const sized = new ResizeObserver(([{ contentRect }]) => {
    width = contentRect.width;
    first = 0n;
    draw();
  });
  const frame = h('div.forks', picture);
  sized.observe(frame);
  let due = 0;
  const changed = () => {
    cancelAnimationFrame(due);
    due = requestAnimationFrame(draw);
  };
  tree.addEventListener('change', changed, { signal });
  signal.addEventListener('abort', () => sized.disconnect());
  const legend = h('p.legend', ...['finalized', 'confirmed', 'processed', 'skipped', 'undone'].map((name) => h('span', { class: name }, sample(name), name)));
  return h('div', frame, h('div.row', legend, words));
}

function sample(name) {
  const inside = name === 'skipped' ? s('g', { class: name }, s('path', { d: 'M4 4l6 6m0 -6l-6 6' })) : s('g', { class: `block ${name}` }, s('circle', { class: 'dot', cx: 7, cy: 7, r: 4.5 }));
  return s('svg', { width: 14, height: 14, 'aria-hidden': 'true' }, inside);
}
