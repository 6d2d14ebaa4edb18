// The live tape: every update of the ledger as it happens, and the button that cuts the wire to show that nothing is lost by it.

import { Client } from '/client/ledgerd.js';
import { announce, every, h, say } from './dom.js';
import { duration, number } from './format.js';
import { Plug } from './plug.js';
import { lag } from './pulse.js';
import { Tally } from './tally.js';
import { Updates } from './updates.js';

const outage = 2000; // ms for which the button keeps the socket away
const mostLag = 3000; // ms that the page may be late, and be later with each heartbeat, before it passes over what is under way

/** @param {AbortSignal} signal */
export function tape(signal) {
  const updates = new Updates('Live tape of account updates', 'The tape begins with the next block.', signal);
  const plug = new Plug();
  const state = h('span.quiet', { id: 'tape-state' }, 'connecting');
  const result = h('output', { id: 'resume-result', class: 'result' });
  const pausing = h('button', { type: 'button', 'aria-pressed': 'false', onclick: pause }, 'Pause');
  const killing = h('button.primary', { type: 'button', disabled: true, onclick: kill }, 'Kill & resume');
  const filter = h('input', { type: 'search', id: 'tape-filter', 'aria-label': 'Filter the tape', placeholder: 'account, owner, mint, wallet', spellcheck: 'false', autocapitalize: 'off', oninput: narrow });
  let tally = new Tally(0n); // since the last start, or since the wire was cut
  let cut = null; // an experiment that runs: {after, at, resumed}
  let fell = null; // the number up to which it had come when it gave up the rest
  let before = Infinity; // how late the heartbeat before was
  let heard = { text: 'connecting', late: 0, rate: '', at: Date.now() }; // what came last: a heartbeat, or that the tape is connected
  let stream = follow();

  function follow() {
    return new Client(location.origin, { WebSocket: plug.WebSocket }).stream({ tokens: true }, handler());
  }

  function handler() {
    return {
      start({ seq }) {
        tally = new Tally(seq);
        updates.clear();
        if (cut) end('the node did not hold that number any more, so the tape began anew');
        if (fell !== null) updates.mark(`this page fell behind, and passed over ${number(seq - fell)} updates`);
        fell = null;
        ready();
      },
      update(update) {
        tally.take(update.seq);
        updates.add(update);
      },
      slotEnd() { updates.end(); },
      rollback({ from_slot: from, to_slot: to }) { updates.mark(`rollback: slot ${number(from)} is undone back to ${number(to)}, and its accounts are restored`); },
      heartbeat({ seq, timestamp }) {
        tally.close(seq);
        if (cut?.resumed) report();
        const late = lag.of(timestamp);
        hear(`seq ${number(seq)}`, late, updates.beat());
        const later = late > before; // not so while it catches up
        before = late;
        if (late > mostLag && later && !cut) catchUp();
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
    };
  }
  every(500, tell, signal);
  signal.addEventListener('abort', () => stream.close());

  // The page falls behind: it passes over what is under way to it, and begins again where the node is.
  function catchUp() {
    killing.disabled = true;
    [fell, before] = [tally.newest, Infinity];
    stream.close();
    stream = follow();
  }

  function ready() {
    killing.disabled = false;
    hear('connected');
  }

  function hear(text, late = 0, rate = '') {
    heard = { text, late, rate, at: Date.now() };
    tell();
  }

  // A heartbeat comes each second: one that is overdue is late itself.
  function tell() {
    if (!stream?.connected) return;
    const late = heard.late + Math.max(0, Date.now() - heard.at - 1500);
    say(state, `${heard.text}${late > 500 ? ` · ${duration(late)} late` : ''}${heard.rate}`);
  }

  function pause() {
    updates.paused = !updates.paused;
    pausing.ariaPressed = updates.paused;
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
    h('div.row', h('h2', { id: 'tape-title' }, 'Live tape'), state,
      h('span.tools', filter, pausing, killing)),
    result, updates.element);
}
