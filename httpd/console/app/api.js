// The one way from the console to the node: the client library, with a budget that hears of every answer.

import { Client, StatusError, retryAfter } from '/client/ledgerd.js';
import { Budget } from './budget.js';

export const budget = new Budget();

/** What is known of the way to the node: whether it answers, whether its streams come, and until when it refuses. */
class Link extends EventTarget {
  /** @type {'unknown' | 'up' | 'away'} */
  state = 'unknown';
  live = true; // streams come
  refusedUntil = 0; // ms since 1970
  node = ''; // its identifier

  up() { this.#set('state', 'up'); }
  away() { this.#set('state', 'away'); }
  hears(live) { this.#set('live', live); }
  refused(until) { this.#set('refusedUntil', until); }

  #set(name, value) {
    if (this[name] === value) return;
    this[name] = value;
    this.dispatchEvent(new Event('change'));
  }
}

export const link = new Link();

async function counted(address, options) {
  let response;
  try {
    response = await fetch(address, options);
  } catch (error) {
    if (!options?.signal?.aborted) link.away();
    throw error;
  }
  budget.note(response.headers);
  link.up();
  if (response.status === 429) link.refused(Date.now() + 1000 * (retryAfter(response.headers) || 60));
  return response;
}

export const client = new Client(location.origin, { fetch: counted });

/** Asks for the node's figures, which are text and not JSON. */
export async function metricsText(signal) {
  const response = await counted(`${client.base}/metrics`, { signal });
  const text = await response.text();
  if (!response.ok) throw new StatusError(response.status, response.statusText, '', retryAfter(response.headers));
  return text;
}

/** The node's time, in ms since 1970: the clock of this machine may be wrong. */
export const nodeTime = () => Date.now() - budget.ahead;

/** Waits some ms, less if the link changes meanwhile. */
export function pause(ms, signal) {
  return new Promise((resolve, reject) => {
    const over = new AbortController();
    const end = (settle) => {
      clearTimeout(timer);
      over.abort();
      settle();
    };
    const timer = setTimeout(() => end(resolve), ms);
    if (link.state !== 'up') link.addEventListener('change', () => { if (link.state === 'up') end(resolve); }, { signal: over.signal });
    signal?.addEventListener('abort', () => end(() => reject(signal.reason)), { signal: over.signal });
  });
}

/**
 * Asks until there is an answer that later tries would not change: the node may be away, or refuse for a while.
 * @template T
 * @param {() => Promise<T>} ask
 * @param {AbortSignal} signal
 * @param {(why: string) => void} waiting is told why nothing comes yet
 * @returns {Promise<T>}
 */
export async function patiently(ask, signal, waiting) {
  for (;;) {
    try {
      return await ask();
    } catch (error) {
      signal.throwIfAborted();
      const refused = error instanceof StatusError;
      if (refused && error.retryAfter === 0) throw error;
      if (!refused && !(error instanceof TypeError)) throw error;
      const wait = refused ? 1000 * error.retryAfter : 2000;
      waiting(refused ? `The node answers ${error.status}: ${error.details || error.text}.` : 'The node cannot be reached.');
      await pause(wait, signal);
    }
  }
}
