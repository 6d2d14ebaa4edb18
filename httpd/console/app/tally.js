// Counts whether a stream of everything has a hole: at the processed level its updates are numbered one after another.

/** A count that begins after a number that was seen. */
export class Tally {
  received = 0n;
  twice = 0n;
  missed = 0n;

  /** @param {bigint} after */
  constructor(after) { this.newest = after; }

  /** An update came. @param {bigint} seq */
  take(seq) {
    if (seq <= this.newest) {
      this.twice++;
      return;
    }
    this.received++;
    this.missed += seq - this.newest - 1n;
    this.newest = seq;
  }

  /** The node said how far it has counted: what is lacking up to there was missed. @param {bigint} seq */
  close(seq) {
    if (seq <= this.newest) return;
    this.missed += seq - this.newest;
    this.newest = seq;
  }
}
