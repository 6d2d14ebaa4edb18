// The first page: the tree, the figures and the tape.

import { every, h, say } from './dom.js';
import { brief, bytes, duration, number } from './format.js';
import { chart, ranges } from './charts.js';
import { commands, curl, wscat } from './curl.js';
import { figures, tree } from './pulse.js';
import { tape } from './tape.js';
import { treeView } from './treeview.js';

/** @param {AbortSignal} signal */
export function overview(signal) {
  return {
    title: 'Overview',
    element: h('div', h('h1.hidden', 'Overview of this node'),
      h('section', { 'aria-labelledby': 'tree-title' },
        h('div.row', h('h2', { id: 'tree-title' }, 'Forks of the last 40 slots'), levels(signal)), treeView(tree, signal)),
      tiles(signal), tape(signal),
      commands(curl('/blocks/latest'), curl('/metrics'), wscat('?extended=true&tokens=true'))),
  };
}

// The newest slot of each commitment level, how far it is behind and how long ago it was told.
function levels(signal) {
  const parts = ['processed', 'confirmed', 'finalized'].map((name) => {
    const [slot, lag] = [h('b', '–'), h('span.quiet.lag')];
    return { name, slot, lag, element: h('span.level', { id: `level-${name}`, title: 'slots behind the tip, and how long ago it was told' }, `${name} `, slot, lag) };
  });
  const draw = () => {
    const tip = tree.levels.processed?.slot;
    for (const { name, slot, lag } of parts) {
      const level = tree.levels[name];
      if (level === null) continue;
      say(slot, number(level.slot));
      const behind = tip > level.slot ? `−${number(tip - level.slot)} · ` : '';
      say(lag, `${behind}${duration(Date.now() - level.at)}`);
    }
  };
  every(250, draw, signal);
  return h('p.levels', parts.map(({ element }) => element));
}

// What the memory is for.
function memory(now) {
  const of = (...names) => names.reduce((sum, name) => sum + (now.get(`ledgerd_${name}_bytes`) ?? 0), 0);
  const parts = { accounts: of('accounts_memory'), transactions: of('transactions_memory'), history: of('history_memory'), clients: of('ws_held', 'client_memory') };
  const rest = Object.values(parts).reduce((left, size) => left - size, now.get('process_resident_memory_bytes') ?? 0);
  return Object.entries({ ...parts, 'program and uncollected': Math.max(0, rest) }).map(([name, size]) => `${name} ${bytes(size)}`).join(' · ');
}

function tiles(signal) {
  const drawn = [];
  const tile = (name, write, detail = () => '') => {
    const [value, small] = [h('b', '–'), h('small.quiet')];
    drawn.push(() => { say(value, write()); say(small, detail()); });
    return h('div.tile', h('h3', name), value, small);
  };
  const withChart = (name, series, write, detail = () => '') => {
    let aimed = ''; // the point that the pointer is at
    const made = tile(name, () => (series().length > 0 ? write(series().at(-1)[1]) : '–'), () => aimed || detail());
    const line = chart(name, write, (text) => { aimed = text; say(made.querySelector('small'), aimed || detail()); }, signal);
    drawn.push(() => line.draw(series()));
    made.append(line.element);
    return made;
  };
  const figure = (name) => figures.now.get(name);
  const shown = (name, write) => (figure(name) === undefined ? '–' : write(figure(name)));
  const parts = h('small.row');
  drawn.push(() => say(parts, memory(figures.now)));
  const element = h('section.tiles', { 'aria-label': 'Figures' }, ranges(),
    withChart('updates / s', () => figures.updates, brief),
    withChart('transactions / s', () => figures.transactions, brief),
    withChart('sockets', () => figures.sockets, brief, () => 'those of this page too'),
    withChart('memory', () => figures.memory, bytes), parts,
    tile('slow consumers', () => shown('ledgerd_ws_closed_total{reason="slow_consumer"}', brief), () => 'closed since the start'),
    tile('accounts', () => shown('ledgerd_accounts', number), () => shown('ledgerd_token_accounts', (n) => `${number(n)} of tokens`)),
    tile('snapshot', () => (figure('ledgerd_snapshots_total') > 0 ? shown('ledgerd_snapshot_age_seconds', (seconds) => duration(1000 * seconds)) : '–'),
      () => `${figure('ledgerd_snapshots_total') > 0 ? 'ago' : 'none yet'}, ${shown('ledgerd_history_bytes', bytes)} of history`),
    tile('last rollback', () => (tree.rollback ? `−${tree.rollback.blocks}` : '–'),
      () => (tree.rollback ? `${number(tree.rollback.from)} → ${number(tree.rollback.to)}` : shown('ledgerd_rollbacks_total', (n) => `${number(n)} since the start`))));
  const draw = () => drawn.forEach((one) => one());
  figures.addEventListener('change', draw, { signal });
  draw();
  return element;
}
