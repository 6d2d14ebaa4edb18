// The cluster as this node's figures tell it: who writes, who would take over, how far this node is behind, and what has changed.

import { link, nodeTime } from './api.js';
import { commands, curl } from './curl.js';
import { cell, h, table } from './dom.js';
import { labelled } from './figures.js';
import { clock, duration, ends, number } from './format.js';
import { figures } from './pulse.js';

const does = { writer: 'writes', standby: 'follows, and waits to take over', reader: 'follows', deposed: 'was replaced, and begins anew' };

/** Null of a node that is alone. @param {Map<string, number>} now */
export function clusterOf(now) {
  const figure = (name) => now.get(`ledgerd_cluster_${name}`) ?? 0;
  const first = (name) => labelled(now, `ledgerd_cluster_${name}`).find(({ value }) => value > 0);
  return now.has('ledgerd_cluster_epoch')
    ? { now, figure, epoch: figure('epoch'), role: first('role')?.role ?? '', writer: first('writer_start_time_seconds')?.node ?? '' } : null;
}

const named = (node) => h('code', { title: node }, ends(node)); // a phone has no room for all of it
const changes = []; // newest first
let last = null; // the cluster at the newest poll

figures.addEventListener('polled', () => {
  const now = clusterOf(figures.now);
  const say = (...text) => changes.unshift(h('tr', h('td', clock(Date.now())), h('td', ...text)));
  if (now && last) {
    const [peers, before] = [now, last].map(({ figure }) => figure('peers'));
    if (peers !== before) say(`Other nodes that are heard of: ${peers}, after ${before}.`);
    if (now.role !== last.role) say(`This node ${does[now.role]} now.`);
    if (now.writer === '' && last.writer !== '') say('Node ', named(last.writer), ', which wrote, is not heard of any more.');
    if (now.writer !== '' && (now.writer !== last.writer || now.epoch > last.epoch)) say('Node ', named(now.writer), ` became the writer, in term ${number(now.epoch)}.`);
    changes.length = Math.min(changes.length, 100);
  }
  last = now;
});

// How the writer took over, by its own word; a program before this one tells nothing of it.
function takeover({ now, epoch }) {
  const [last, first] = ['last', 'first'].map((block) => {
    const [slot, time] = ['slot', 'time_seconds'].map((name) => labelled(now, `ledgerd_cluster_handover_${name}`).find((one) => one.block === block));
    return { node: slot?.node, slot: number(slot?.value ?? 0), at: 1000 * (time?.value ?? 0) };
  });
  const before = last.node ? `node ${last.node}` : `the writer of term ${number(epoch - 1)}`;
  if (last.at === 0) return `It took over from ${before}.`;
  const told = `It took over from ${before}, whose last block was slot ${last.slot}, at ${clock(last.at)}.`;
  return first.at === 0 ? `${told} It has written no block yet.`
    : `${told} Its own first was slot ${first.slot}, at ${clock(first.at)}: for ${duration(first.at - last.at)} no block was written, and those that were due came late.`;
}

function story({ now, figure, epoch, role, writer }) {
  const [since, lag] = [1000 * figure('writer_start_time_seconds'), figure('lag_seconds')];
  return [
    figure('connected') ? '' : 'No nats-server is connected: this was known last.',
    writer ? `${writer === link.node ? 'This node' : `Node ${writer}`} has written the log since ${clock(since)}, for ${duration(nodeTime() - since)}, in term ${number(epoch)}. ${epoch > 1
      ? takeover({ now, epoch }) : 'It is the first writer.'}`
      : 'No node says that it writes the log. One that waits takes over once it holds all of it; reads go on.',
    `${figure('members{role="standby"}') || 'Nobody'} would take over; ${figure('members{role="reader"}')} follow only.`,
    `This node, ${link.node}, ${does[role]}. ${lag < 3 ? 'It knows that it holds all of the log' : `For ${duration(1000 * lag)} it has not known that it holds all of the log`}.`,
  ].filter(Boolean).map((text) => h('p', text));
}

// Who is heard of, and how far each says it is behind.
function nodes({ now }) {
  const rows = labelled(now, 'ledgerd_cluster_member_lag_seconds').map(({ node, role, value: lag }) => h('tr', h('td', named(node), node === link.node && ', this one'), h('td', role),
    cell(duration(1000 * lag))));
  return table('Nodes', ['node', 'role', 'behind>'], h('tbody', rows));
}

/** @param {AbortSignal} signal */
export function clusterPage(signal) {
  const place = h('div', 'Asking the node …');
  const draw = () => {
    if (figures.at === 0) return;
    const now = clusterOf(figures.now);
    place.replaceChildren(...(now ? story(now) : [h('p', 'This node is alone. The manual says how ', h('a', { href: '/docs/cluster' }, 'nodes share a ledger'), '.')]));
    if (now) place.append(nodes(now), h('h2', 'Seen by this page'), changes.length > 0 ? table('Changes', ['when', 'what'], h('tbody', changes))
      : h('p.quiet', 'Nothing. A new writer, and nodes that come and go, are listed here.'));
  };
  figures.addEventListener('change', draw, { signal });
  draw();
  return { title: 'Cluster', element: h('div', h('h1', 'Cluster'), place, commands(curl('/metrics'), curl('/status'))) };
}
