// A plug in the way of a stream: pulled out, its socket is gone and none can be opened, as when a network fails.

export class Plug {
  #out = false;
  #socket = null;

  /** Drops the socket as it is. */
  pull() {
    this.#out = true;
    this.#socket?.close();
  }

  push() { this.#out = false; }

  /** What a client takes for WebSocket. */
  get WebSocket() {
    const plug = this;
    return function Plugged(address) {
      if (plug.#out) return new Dead();
      return plug.#socket = new WebSocket(address);
    };
  }
}

// A socket that could not be opened.
class Dead {
  constructor() { setTimeout(() => this.onclose?.({ code: 4000, reason: 'unplugged' })); }

  close() {}
}
