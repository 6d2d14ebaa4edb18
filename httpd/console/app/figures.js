// The node's figures: what it tells in Prometheus's format, polled as often as the budget allows, and the series for the charts.

import { budget, link, metricsText, pause } from './api.js';

const kept = 60 * 60_000; // ms of points
const longest = 30_000; // ms that a poll may take: that of a connection which is dead, and says so to nobody, would have no end
const patience = 4; // polls that another node answers before the page takes it for its own
const window = 4000; // ms over which the rate of updates is taken: blocks come in steps

/** Reads Prometheus's text. Names have their labels; figures of shards and the like are added up under the bare name. */
export function parseFigures(text) {
  const all = new Map();
  for (const [, name, labels, value] of text.matchAll(/^([a-z_:][\w:]*)(\{[^\n]*\})? (\S+)$/gmi)) {
    all.set(name + (labels ?? ''), Number(value));
    if (labels) all.set(name, (all.get(name) ?? 0) + Number(value));
  }
  return all;
}

/** The figures of a name: the labels of each, by theirs, and its value. @param {Map<string, number>} figures */
export function labelled(figures, name) {
  const labels = (key) => Object.fromEntries([...key.matchAll(/(\w+)="([^"]*)"/g)].map(([, label, text]) => [label, text]));
  return [...figures].filter(([key]) => key.startsWith(`${name}{`)).map(([key, value]) => ({ ...labels(key), value }));
}

/** What is shown of the figures, and how it went. It fires "change", and "polled" when the node has answered. */
export class Figures extends EventTarget {
  /** @type {Map<string, number>} the newest answer */
  now = new Map();
  at = 0; // when that came, ms since 1970
  /** Whether several nodes answer at this address: all figures are of one of them. */
  several = false;
  updates = []; // a rate each second: [ms since 1970, value], and so the others
  transactions = []; // a rate each poll, and so the others
  sockets = [];
  memory = [];
  #node; // the identifier of the node that is shown
  #others = 0; // polls since it answered last
  #numbers = []; // [ms, seq] of the last seconds

  /** The stream has caught up with the node, and told a number. @param {bigint} seq */
  numbered(seq) {
    const now = performance.now();
    this.#numbers.push([now, seq]);
    while (this.#numbers.length > 2 && this.#numbers[1][0] < now - window) this.#numbers.shift();
  }

  /** A second has passed: the rate of updates goes on its chart. */
  beat() {
    if (this.#numbers.length < 2) return;
    const [first, last] = [this.#numbers[0], this.#numbers.at(-1)];
    if (last[0] - first[0] < 500) return;
    push(this.updates, Math.max(0, Number(last[1] - first[1])) / ((last[0] - first[0]) / 1000));
    this.dispatchEvent(new Event('change'));
  }

  /** The node did not answer: the next that does may have begun anew. */
  failed() { this.#node = undefined; }

  /** A node answered. @param {Map<string, number>} figures */
  polled(figures) {
    const node = labelled(figures, 'ledgerd_node_info')[0]?.node ?? figures.get('process_start_time_seconds'); // older nodes have no identifier
    if (this.#node !== undefined && node !== this.#node && ++this.#others < patience) return;
    this.several ||= node === this.#node && this.#others > 0;
    [this.#node, this.#others] = [node, 0];
    const [before, at] = [this.now, Date.now()];
    const name = 'ledgerd_transactions_total';
    const more = figures.get(name) - before.get(name);
    if (more >= 0) push(this.transactions, more / ((at - this.at) / 1000));
    push(this.sockets, figures.get('ledgerd_ws_connections') ?? 0);
    push(this.memory, figures.get('process_resident_memory_bytes') ?? 0);
    [this.now, this.at] = [figures, at];
    this.dispatchEvent(new Event('polled'));
    this.dispatchEvent(new Event('change'));
  }

  /** Polls for ever: never faster than the budget allows, not at all while nobody looks, and slowly while the node is away. */
  async run() {
    for (let failures = 0; ;) {
      await pause(failures > 0 ? Math.min(10_000, 500 * 2 ** failures) : Math.max(budget.interval(), link.refusedUntil - Date.now()));
      if (document.hidden) await new Promise((resolve) => document.addEventListener('visibilitychange', resolve, { once: true }));
      try {
        this.polled(parseFigures(await metricsText(AbortSignal.timeout(longest))));
        failures = 0;
      } catch {
        this.failed();
        failures = link.refusedUntil > Date.now() ? 0 : failures + 1;
      }
    }
  }
}

function push(series, value) {
  const now = Date.now();
  series.push([now, value]);
  while (series[0][0] < now - kept) series.shift();
}
