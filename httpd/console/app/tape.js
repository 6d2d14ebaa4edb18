// The live tape: every update of the ledger as it happens, and the button that cuts the wire to show that nothing is lost by it.

import { Client } from '/client/ledgerd.js';
import { announce, h, say } from '/console/dom.js';
import { duration, number } from '/console/format.js';
import { Plug } from '/console/plug.js';
import { Tally } from '/console/tally.js';
import { Updates } from '/console/updates.js';

const outage = 2000; // ms for which the button keeps the socket away

/** @param {AbortSignal} signal */
export function tape(signal) {
  const updates = new Updates('Live tape of account updates', 'The tape begins with the next block.', signal);
  const plug = new Plug();
  const state = h('span', { class: 'quiet', id: 'tape-state' }, 'connecting');
  const result = h('output', { id: 'resume-result', class: 'result' });
  const pausing = h('button', { type: 'button', 'aria-pressed': 'false', onclick: pause }, 'Pause');
  const killing = h('button', { type: 'button', class: 'primary', disabled: true, onclick: kill }, 'Kill & resume');
  const filter = h('input', { type: 'search', id: 'tape-filter', placeholder: 'account, owner, mint, wallet', spellcheck: 'false', autocapitalize: 'off', oninput: narrow });
  let tally = new Tally(0n); // since the last start, or since the wire was cut
  let cut = null; // an experiment that runs: {after, at, resumed}

  const stream = new Client(location.origin, { WebSocket: plug.WebSocket }).stream({ tokens: true }, {
    start({ seq }) {
      tally = new Tally(seq);
      updates.clear();
      if (cut) end('the node did not hold that number any more, so the tape began anew');
      ready();
    },
    update(update) {
      tally.take(update.seq);
      updates.add(update);
    },
    rollback({ from_slot: from, to_slot: to }) { updates.mark(`rollback: slot ${number(from)} is undone back to ${number(to)}, and its accounts are restored`); },
    heartbeat({ seq }) {
      tally.close(seq);
      if (cut?.resumed) report();
      say(state, `seq ${number(tally.newest)}`);
    },
    resumed(after) {
      updates.mark(`resumed after number ${number(after)}`);
      if (cut) cut.resumed = true;
      else ready();
    },
    disconnected(why) {
      if (!cut) killing.disabled = true;
      say(state, cut ? 'the wire is cut' : `away: ${why}`);
    },
    failed(error) { say(state, error.message); },
  });
  signal.addEventListener('abort', () => stream.close());

  function ready() {
    killing.disabled = false;
    say(state, 'connected');
  }

  function pause() {
    updates.paused = !updates.paused;
    pausing.setAttribute('aria-pressed', String(updates.paused));
    pausing.textContent = updates.paused ? 'Go on' : 'Pause';
  }

  function narrow() {
    const word = filter.value.trim();
    updates.filter = ({ pubkey, owner, token }) => [pubkey, owner, token?.mint, token?.owner].some((name) => name?.includes(word));
    updates.changed();
  }

  function kill() {
    tally = new Tally(tally.newest);
    cut = { after: tally.newest, at: performance.now(), resumed: false };
    killing.disabled = true;
    updates.mark(`the socket was dropped after number ${number(cut.after)}`);
    say(result, `Dropped after number ${number(cut.after)}. It stays away for ${duration(outage)} …`);
    plug.pull();
    setTimeout(() => {
      plug.push();
      if (!signal.aborted) stream.reconnect();
    }, outage);
  }

  // The node has said how far it counted, and what came since the cut was counted here.
  function report() {
    const { received, missed, twice, newest } = tally;
    end(`numbers ${number(cut.after + 1n)} to ${number(newest)}: ${number(received)} came, ${number(twice)} twice, `, `${number(missed)} missed`, missed === 0n);
  }

  function end(text, verdict = '', good = false) {
    result.replaceChildren(`Resumed, ${duration(performance.now() - cut.at)} after the cut: ${text}`, h('strong', { class: good ? 'good' : 'bad' }, verdict));
    announce(`Resumed: ${verdict || text}`);
    cut = null;
    ready();
  }

  return h('section', { 'aria-labelledby': 'tape-title' },
    h('div', { class: 'row' }, h('h2', { id: 'tape-title' }, 'Live tape'), state,
      h('span', { class: 'tools' }, h('label', { class: 'hidden', for: 'tape-filter' }, 'Filter the tape'), filter, pausing, killing)),
    result, updates.element);
}
