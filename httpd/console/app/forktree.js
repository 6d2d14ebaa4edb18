// The tree of the newest blocks, built from what any socket is told: slot_end frames extend the chain, rollback frames undo blocks.

/** How many slots are shown. */
export const span = 40;

const kept = 2 * span; // slots below the tip after which a block is forgotten

/**
 * A block as the stream told it. Its parent is null where the stream began; at is when it came, in ms since 1970, and updates is how many
 * there are in it, both null where that is not known.
 * @typedef {{id: string, slot: bigint, parent: Block | null, undone: boolean, at: number | null, updates: bigint | null}} Block
 */

/** The newest blocks, on the chain and off it. It fires "change". */
export class ForkTree extends EventTarget {
  /** @type {Map<string, Block>} */
  blocks = new Map();
  /** @type {Block | null} */
  tip = null;
  /** The newest slot by commitment, and when it was told, in ms since 1970. */
  levels = { processed: null, confirmed: null, finalized: null };
  /** Whether blocks are told as they come, and not those that came before. */
  live = false;
  /** The newest undoing: {from, to, blocks, at}. */
  rollback = null;
  #seq = null; // of the newest frame

  /** Begins anew: what came before is not known. */
  start() {
    this.blocks.clear();
    this.tip = null;
    this.#seq = null;
    this.dispatchEvent(new Event('change'));
  }

  /** A block was added to the chain. One that comes back after it was undone is itself again. @param {bigint} slot @param {bigint} seq of its last update */
  extend(slot, seq) {
    if (this.tip !== null && slot <= this.tip.slot) return; // a frame that came again
    const id = `${slot} on ${this.tip?.slot ?? '?'}`;
    const block = this.blocks.get(id) ?? { id, slot, parent: this.tip, undone: false, at: this.live ? Date.now() : null, updates: this.#seq === null ? null : seq - this.#seq };
    this.#seq = seq;
    block.undone = false;
    this.blocks.set(id, block);
    this.tip = block;
    for (const old of this.blocks.values()) if (old.slot + BigInt(kept) < slot) this.blocks.delete(old.id);
    this.reached('processed', slot);
  }

  /** The chain was cut back. What is restored by that is numbered, too. @param {bigint} from @param {bigint} to @param {bigint} seq */
  undo(from, to, seq) {
    let blocks = 0;
    while (this.tip !== null && this.tip.slot > to) {
      this.tip.undone = true;
      this.tip = this.tip.parent;
      blocks++;
    }
    if (blocks === 0) return; // a frame that came again, or of blocks that were never told
    this.#seq = seq;
    this.rollback = { from, to, blocks, at: Date.now() };
    this.reached('processed', to);
  }

  /** A commitment level has reached a slot. */
  reached(level, slot) {
    this.levels[level] = { slot, at: Date.now() };
    this.dispatchEvent(new Event('change'));
  }

  /** @param {Block} block @returns {'undone' | 'finalized' | 'confirmed' | 'processed'} */
  state(block) {
    if (block.undone) return 'undone';
    if (block.slot <= (this.levels.finalized?.slot ?? -1n)) return 'finalized';
    return block.slot <= (this.levels.confirmed?.slot ?? -1n) ? 'confirmed' : 'processed';
  }

  /** The blocks of the newest slots, oldest first. */
  visible() {
    if (this.tip === null) return [];
    let newest = this.tip.slot;
    for (const { slot } of this.blocks.values()) if (slot > newest) newest = slot;
    const first = newest - BigInt(span - 1);
    return [...this.blocks.values()].filter(({ slot }) => slot >= first).sort((a, b) => (a.slot < b.slot ? -1 : 1));
  }

  /** Slots from the first on that lie between two blocks of the chain and that no block is known of. @param {bigint} first */
  skipped(first) {
    const filled = new Set([...this.blocks.values()].map(({ slot }) => slot));
    const slots = [];
    for (let block = this.tip; block?.parent && block.slot > first; block = block.parent) {
      const { slot: parent } = block.parent;
      for (let slot = parent < first ? first : parent + 1n; slot < block.slot; slot++) if (!filled.has(slot)) slots.push(slot);
    }
    return slots;
  }
}
