// What the pages of single things have in common: they ask, say what they wait for, and show the answer or why there is none.

import { StatusError } from '/client/ledgerd.js';
import { budget, link, patiently, pause } from './api.js';
import { h } from './dom.js';
import { tree } from './pulse.js';

/**
 * A place that shows an answer once it is there.
 * @template T
 * @param {() => Promise<T>} ask
 * @param {(answer: T) => Node | Node[]} show
 * @param {AbortSignal} signal
 * @param {(error: StatusError) => Node | Node[]} [refused] shows a refusal that stays
 * @returns {HTMLElement}
 */
export function asked(ask, show, signal, refused = refusal) {
  const place = h('div', { 'aria-busy': 'true' }, h('p.quiet', 'Asking the node …'));
  const put = (nodes) => place.replaceChildren(...[nodes].flat());
  (async () => {
    try {
      put(show(await patiently(ask, signal, (why) => put(h('p.quiet', `${why} This page goes on by itself.`)))));
    } catch (error) {
      if (signal.aborted) return;
      if (!(error instanceof StatusError)) throw error;
      put(refused(error));
    } finally {
      place.removeAttribute('aria-busy');
    }
  })();
  return place;
}

/**
 * Asks now, and again when the next commitment level has reached what was shown: the answer is another one then.
 * @param {(shown: (slot: bigint, level: string) => void) => void} ask calls shown with what it shows; its level is '' where there is none yet
 * @param {AbortSignal} signal
 */
export function atEachLevel(ask, signal) {
  let now = null;
  const again = () => {
    now = null;
    ask((slot, level) => { now = { slot, level }; });
  };
  tree.addEventListener('change', () => {
    const next = now && { '': 'processed', processed: 'confirmed', confirmed: 'finalized' }[now.level];
    if (tree.levels[next]?.slot >= now?.slot) again();
  }, { signal });
  again();
}

/** The mark of a commitment level. */
export const badge = (level) => h('span', { class: `badge ${level}` }, level);

/** Says why the node refuses. */
export const refusal = (error) => h('p.refusal', h('strong', `${error.status} ${error.text}. `), error.details);

/**
 * A list that comes in pages: a button adds the next one.
 * @param {(cursor: string | undefined) => Promise<{rows: HTMLElement[], next: string | null}>} ask
 * @param {(body: HTMLElement) => HTMLElement} frame
 * @param {string} empty
 * @param {AbortSignal} signal
 * @param {boolean} [live] what is new comes on top by itself; rows are told apart by their data-key
 */
export function paged(ask, frame, empty, signal, live = false) {
  const body = h('tbody');
  const more = h('button', { type: 'button', onclick: load }, 'More');
  const told = h('span.quiet', { role: 'status' });
  const element = h('div', frame(body), h('div.row', more, told));
  let cursor;

  function tell() {
    more.hidden = cursor === null;
    const count = body.childElementCount;
    told.textContent = count === 0 ? empty : cursor === null ? `all ${count}` : `the first ${count}`;
  }

  async function load() {
    more.disabled = true;
    try {
      const { rows, next } = await patiently(() => ask(cursor), signal, (why) => { told.textContent = why; });
      cursor = next;
      body.append(...rows);
      tell();
    } catch (error) {
      if (signal.aborted) return;
      if (!(error instanceof StatusError)) throw error;
      more.hidden = true;
      told.textContent = error.status === 404 && cursor === undefined ? empty : `${error.text}: ${error.details}`;
    }
    more.disabled = false;
  }

  // Puts what is new on top. Where more is new than a page shows, the list begins again, unless somebody reads on in it.
  async function renew() {
    const { rows, next } = await ask(undefined);
    const first = body.firstElementChild?.dataset.key;
    const fresh = rows.findIndex((row) => row.dataset.key === first);
    if (fresh >= 0) {
      body.prepend(...rows.slice(0, fresh));
    } else if (body.childElementCount <= rows.length) {
      body.replaceChildren(...rows);
      cursor = next;
    } else {
      told.textContent = 'More is new than a page shows: open this page again to see it.';
      return;
    }
    tell();
  }

  async function follow() {
    while (!signal.aborted) {
      try {
        await pause(Math.max(2 * budget.interval(), link.refusedUntil - Date.now()), signal);
        if (!document.hidden && !more.disabled) await renew();
      } catch (error) {
        if (!signal.aborted && !(error instanceof StatusError || error instanceof TypeError)) throw error;
      }
    }
  }

  load();
  if (live) follow();
  return element;
}
