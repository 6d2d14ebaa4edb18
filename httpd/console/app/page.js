// What the pages of single things have in common: they ask, say what they wait for, and show the answer or why there is none.

import { StatusError } from '/client/ledgerd.js';
import { budget, link, patiently, pause } from './api.js';
import { h } from './dom.js';
import { tree } from './pulse.js';

/**
 * A place that shows an answer once it is there. A place of before keeps what it shows until then.
 * @template T
 * @param {() => Promise<T>} ask
 * @param {(answer: T) => Node | Node[] | null} show returns null if that stays
 * @param {AbortSignal} signal
 * @param {(error: StatusError) => Node | Node[]} [refused] shows a refusal that stays
 * @param {HTMLElement} [place]
 * @returns {HTMLElement}
 */
export function asked(ask, show, signal, refused = refusal, place = h('div')) {
  const put = (nodes) => nodes && place.replaceChildren(...[nodes].flat());
  const first = !place.hasChildNodes();
  const wait = (why) => first && put(h('p.quiet', why));
  place.ariaBusy = first || null;
  wait('Asking the node …');
  (async () => {
    try {
      put(show(await patiently(ask, signal, (why) => wait(`${why} This page goes on by itself.`))));
    } catch (error) {
      if (signal.aborted) return;
      if (!(error instanceof StatusError)) throw error;
      put(refused(error));
    } finally {
      place.ariaBusy = null;
    }
  })();
  return place;
}

const following = { '': 'processed', processed: 'confirmed', confirmed: 'finalized' };

/**
 * The same of what has a commitment level: asked for again when the next level has reached it, and no faster than the console polls.
 * Of an answer with the id of the one before, the level alone is drawn.
 * @template {{id?: string, slot: bigint, level: string}} T its level is '' where none is known yet
 * @param {() => Promise<T>} ask
 * @param {(answer: T, level: Node) => Node[]} show
 * @param {AbortSignal} signal
 * @param {(error: StatusError) => Node} refused
 * @param {(error: StatusError) => bigint | undefined} from the slot that may bring what was refused
 */
export function followed(ask, show, signal, refused, from) {
  const [place, level] = [h('div'), h('span')];
  let [shown, at, due] = [{}, 0, false]; // the newest answer, when it came, whether to go on
  const told = (next) => {
    const same = next.id !== undefined && next.id === shown.id;
    [shown, at, due] = [next, Date.now(), true];
    level.replaceChildren(next.level ? badge(next.level) : 'not known');
    return same;
  };
  const again = () => {
    due = false;
    asked(ask, (answer) => (told(answer) ? null : show(answer, level)), signal, (error) => {
      told({ slot: from(error), level: '' });
      return refused(error);
    }, place);
  };
  tree.addEventListener('change', () => {
    const reached = tree.levels[following[shown.level]]?.slot >= shown.slot;
    if (due && reached && !document.hidden && Date.now() - at >= budget.interval()) again();
  }, { signal });
  again();
  return place;
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
    told.textContent = count === 0 ? empty : cursor === null ? `${count} in all` : `${count} shown`;
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

  load();
  if (live) follow(async () => { if (!more.disabled) await renew(); }, signal);
  return element;
}

/**
 * Asks again and again for what changes with blocks, while the page is looked at, and no faster than the budget allows.
 * @param {() => Promise<void>} renew
 * @param {AbortSignal} signal
 */
export async function follow(renew, signal) {
  while (!signal.aborted) {
    try {
      await pause(Math.max(2 * budget.interval(), link.refusedUntil - Date.now()), signal);
      if (!document.hidden) await renew();
    } catch (error) {
      if (!signal.aborted && !(error instanceof StatusError || error instanceof TypeError)) throw error;
    }
  }
}
