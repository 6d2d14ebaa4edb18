// The pulse of the node: three sockets that name one account that hardly ever changes, and so are told little but slots, rollbacks
// and heartbeats. They make the tree, the tips and the rate of updates, without a single poll.

import { client, link, metricsText } from './api.js';
import { ForkTree, span } from './forktree.js';
import { parseFigures, Figures } from './figures.js';
import { Lag } from './lag.js';

export const tree = new ForkTree();
export const figures = new Figures();
/** Of all streams: these here are told so little that they are hardly ever late. */
export const lag = new Lag();

const firstWait = 200; // ms: a stream waits for less only before its first try to come back
const patience = 5000; // ms: a node that does not answer for so long is as one that is away
const longWait = 1000; // ms: several tries have failed
const quiet = { pubkeys: ['11111111111111111111111111111111'] };

/** Opens the sockets. The first begins some blocks ago, so that the tree is there at once. */
export async function begin() {
  client.stream({ ...quiet, after: await someBlocksAgo() }, {
    start() { tree.start(); },
    slotEnd({ slot, seq }) {
      tree.extend(slot, seq);
      if (tree.live) figures.numbered(seq);
    },
    rollback({ from_slot: from, to_slot: to, seq }) { tree.undo(from, to, seq); },
    heartbeat({ slot, seq, timestamp }) {
      lag.of(timestamp);
      link.up();
      link.hears(true);
      tree.live ||= tree.tip?.slot === slot; // heartbeats come while older blocks are read, too
      if (tree.levels.processed === null) tree.reached('processed', slot);
      if (!tree.live) return;
      figures.numbered(seq);
      figures.beat();
    },
    disconnected(why, wait) {
      tree.live = false;
      lost(wait);
    },
  });
  for (const commitment of ['confirmed', 'finalized']) {
    client.stream({ ...quiet, commitment }, {
      start({ slot }) { tree.reached(commitment, slot); },
      slotEnd({ slot }) { tree.reached(commitment, slot); },
    });
  }
}

// A lost socket may mean a lost node, which one question tells, or that the node takes no more sockets from here, which goes on.
function lost(wait) {
  if (wait < firstWait) client.health({ signal: AbortSignal.timeout(patience) }).catch(({ name }) => name === 'TimeoutError' && link.away()); // else the link hears how it ended
  if (wait > longWait) link.hears(false);
}

/** The number of an update about as many blocks ago as the tree shows, by the node's own figures; undefined where it does not tell. */
async function someBlocksAgo() {
  try {
    const now = parseFigures(await metricsText());
    figures.polled(now);
    const seq = now.get('ledgerd_seq');
    if (seq === undefined) return undefined;
    const each = now.get('ledgerd_account_updates_total') / now.get('ledgerd_blocks_total') || 250;
    return BigInt(Math.max(0, Math.floor(seq - 1.2 * span * each)));
  } catch {
    return undefined; // the tree begins with the next block
  }
}
