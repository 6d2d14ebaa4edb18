// A list of account updates, newest first, each with what it changed.

import { cell, h, table } from './dom.js';
import { accountLink, amount, blockLink, brief, change, number } from './format.js';

const keptRows = 400;
const shownRows = 60;
const mostOfBlock = 60; // rows of one block: more of them nobody reads
const knownAccounts = 20_000; // whose last state is remembered to tell a change
const drawEvery = 250; // ms

/**
 * The rows and their table. The newest block is on top, its updates in no order, as those that come last are not the more important ones; of a
 * block with many it is a fair sample. It holds still while the pointer or the focus is on it, so that what is aimed at stays.
 */
export class Updates {
  /** Whether an update is shown. */
  filter = () => true;
  #since = { passed: 0, shown: 0 }; // the last beat: updates of ended blocks that passed the filter, and those of them that have rows
  #block = []; // the sample of the block that has not ended
  #passed = 0; // updates of it
  #frozen = null; // the rows as they were when it was paused
  #rows = [];
  #known = new Map();
  #body = h('tbody');
  #due = 0;
  #held = false;
  #waiting; // what stands there while there are no rows

  /** @param {string} caption @param {string} waiting @param {AbortSignal} signal */
  constructor(caption, waiting, signal) {
    this.#waiting = waiting;
    this.element = table(caption, ['account', 'Δ lamports>', '-lamports>', 'token>', '-slot>', '-seq>'], this.#body);
    this.element.classList.add('tape');
    for (const [begin, end] of [['pointerenter', 'pointerleave'], ['focusin', 'focusout']]) {
      this.element.addEventListener(begin, () => this.#hold(true));
      this.element.addEventListener(end, () => this.#hold(false));
    }
    signal.addEventListener('abort', () => clearTimeout(this.#due));
    this.#draw();
  }

  /** Forgets everything: what is told next has nothing before it. */
  clear() {
    this.#rows = [];
    [this.#block, this.#passed] = [[], 0];
    this.#known.clear();
    this.changed();
  }

  /** Remembers a state without a row, as of a member of a snapshot. */
  know(update) {
    this.#known.delete(update.pubkey);
    this.#known.set(update.pubkey, { lamports: update.lamports, token: update.token });
    if (this.#known.size > knownAccounts) this.#known.delete(this.#known.keys().next().value);
  }

  add(update) {
    if (this.#block.length > 0 && this.#block[0].update.slot !== update.slot) this.end();
    const row = { update, before: this.#known.get(update.pubkey) };
    this.know(update);
    if (!this.filter(update)) return;
    // Each has its chance to be in the sample, wherever in the block it stands.
    const at = Math.floor(Math.random() * ++this.#passed);
    if (this.#block.length < mostOfBlock) {
      this.#block.push(this.#block[at] ?? row);
      this.#block[at] = row;
    } else if (at < mostOfBlock) {
      this.#block[at] = row;
    }
  }

  /** The block of the newest updates has ended. */
  end() {
    this.#since.passed += this.#passed;
    this.#since.shown += this.#block.length;
    for (const row of this.#block) this.#put(row);
    [this.#block, this.#passed] = [[], 0];
  }

  /** A second has passed: says how much of it is shown, '' for all. */
  beat() {
    const { passed, shown } = this.#since;
    this.#since = { passed: 0, shown: 0 };
    return shown < passed ? ` · ${brief(shown)} of ${brief(passed)} updates a second` : '';
  }

  get empty() { return this.#rows.length === 0; }

  get paused() { return this.#frozen !== null; }

  set paused(paused) {
    this.#frozen = paused ? [...this.#rows] : null;
    clearTimeout(this.#due);
    this.#due = 0;
    this.#draw();
  }

  /** Puts a line between the updates. */
  mark(text) {
    this.end();
    this.#put({ text });
  }

  #put(row) {
    this.#rows.unshift(row);
    if (this.#rows.length > keptRows) this.#rows.pop();
    if (!this.paused) this.changed();
  }

  /** Has the table drawn soon. */
  changed() {
    this.#due ||= setTimeout(() => {
      this.#due = 0;
      if (!this.#held) this.#draw();
    }, drawEvery);
  }

  #hold(held) {
    this.#held = held || this.element.matches(':hover') || this.element.contains(document.activeElement);
    this.element.classList.toggle('held', this.#held);
    if (!this.#held) this.changed();
  }

  #draw() {
    const rows = (this.#frozen ?? this.#rows).filter(({ update }) => !update || this.filter(update)).slice(0, shownRows);
    const text = !this.empty ? 'No update passes the filter.' : this.#waiting;
    this.#body.replaceChildren(...(rows.length > 0 ? rows.map(drawn) : [h('tr', h('td.waiting', { colspan: 6 }, text))]));
  }
}

function drawn(row) {
  if (row.text) return h('tr.mark', h('td', { colspan: 6 }, row.text));
  const { update, before } = row;
  const delta = before && update.lamports - before.lamports;
  return h('tr', {},
    h('td', accountLink(update.pubkey)),
    h('td', { class: `number ${sign(delta)}` }, delta === undefined ? 'new to this page' : change(delta)),
    cell(update.lamports === 0n ? 'closed' : number(update.lamports)),
    cell(token(update.token, before?.token)),
    cell(blockLink(update.slot)),
    h('td.number.quiet', number(update.seq)));
}

const sign = (delta) => (delta === undefined || delta === 0n ? 'quiet' : delta > 0n ? 'more' : 'less');

// What a token account holds, or by how much that has changed.
function token(now, before) {
  if (!now) return '';
  const delta = before && before.mint === now.mint ? BigInt(now.amount) - BigInt(before.amount) : 0n;
  return h('span', { class: sign(delta), title: `mint ${now.mint}` }, delta === 0n ? amount(now.amount, now.decimals) : (delta > 0n ? '+' : '') + amount(String(delta), now.decimals));
}
