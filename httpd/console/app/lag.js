// How late a page takes in what a node sends: a heartbeat says when it was sent, by the node's clock.

/** The least way that a heartbeat was seen to take stands for the clocks' difference. */
export class Lag {
  #least = Infinity;

  /** A heartbeat came. Returns for how many ms longer it was under way than the fastest. @param {string} timestamp @param {number} [now] ms since 1970 */
  of(timestamp, now = Date.now()) {
    const way = now - Date.parse(timestamp);
    this.#least = Math.min(this.#least, way);
    return way - this.#least;
  }
}
