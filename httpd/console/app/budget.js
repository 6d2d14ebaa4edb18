// What the node still lets this visitor ask, and how often the console may therefore ask by itself.

const leastInterval = 5000; // ms between two polls of a limited visitor: 720 an hour, which leaves a quarter of 1,000 for clicks
const freeInterval = 2000; // ms, where nothing is limited
const leastAhead = 3000; // ms that clocks differ at least to be told apart: an answer has whole seconds, and was under way
const mostReserve = 20; // requests that polling leaves for the visitor's own clicks

/** The budget of requests, as the newest answer stated it. */
export class Budget extends EventTarget {
  limit = 0; // 0: unlimited, or nothing was asked yet
  remaining = 0;
  reset = 0; // ms since 1970, by the clock of this machine
  known = false;
  ahead = 0; // ms that the clock of this machine is ahead of the node's
  at = 0; // ms since 1970 of the newest answer, by the node's clock

  /** Takes in the headers of an answer. @param {Headers} headers @param {number} [now] */
  note(headers, now = Date.now()) {
    const limit = headers.get('X-RateLimit-Limit');
    if (limit === null) return; // a proxy's answer, not a node's
    const at = Date.parse(headers.get('Date')) || 0;
    if (at < this.at && headers.get('Cache-Control')?.includes('immutable')) return; // the browser has kept it, and its time and its budget are of then
    this.at = at;
    const ahead = at && now - at;
    this.ahead = Math.abs(ahead) < leastAhead ? 0 : ahead;
    this.limit = Number(limit);
    this.remaining = Number(headers.get('X-RateLimit-Remaining'));
    this.reset = 1000 * Number(headers.get('X-RateLimit-Reset')) + this.ahead;
    this.known = true;
    this.dispatchEvent(new Event('change'));
  }

  /** How many requests polling leaves alone. */
  get reserve() { return Math.min(mostReserve, Math.ceil(this.limit / 4)); }

  /** How long the console waits before it asks by itself again, in ms: what remains above the reserve is spread until the reset. */
  interval(now = Date.now()) {
    if (this.limit === 0) return freeInterval;
    const left = Math.max(0, this.reset - now);
    const spare = this.remaining - this.reserve;
    return spare > 0 ? Math.max(leastInterval, left / spare) : Math.max(leastInterval, left);
  }

  /** How long the console does not repeat what took several requests, in ms: as long as polls would take that many. @param {number} before what remained before it */
  rest(before) { return Math.max(0, before - this.remaining) * this.interval(); }
}
