// Tells a stream of the JavaScript client 17,500 blocks of one number, of which a thousand are undone seven times, and what came so far
// again at many points, as after a resume: it tells each frame once. What it keeps of them is bounded. Argument: the module of the client.
import assert from 'node:assert/strict';
import { pathToFileURL } from 'node:url';

const { Client, Same, decimal } = await import(pathToFileURL(process.argv[2]));

function* frames() {
  for (let round = 0n; round < 7n; round++) {
    const slot = 3001n * round;
    const ancestor = slot + 998n;
    for (let n = 0n; n < 1500n; n++) yield { type: 'slot_end', slot: slot + 2n * n, seq: 7n };
    yield { type: 'rollback', to_slot: ancestor, seq: 7n };
    yield { type: 'account_update', slot: ancestor, seq: 7n };
    for (let n = 0n; n < 1000n; n++) yield { type: 'slot_end', slot: ancestor + 1n + 2n * n, seq: 7n };
  }
}
const written = (frame) => JSON.stringify(frame, decimal).replace(/"(\d+)"/g, '$1');

let socket;
class WebSocket {
  constructor() { socket = this; }
  send() {}
  close() {}
}
const all = [...frames()].map(written);
for (let end = 500; end < all.length; end += 500) {
  const told = [];
  const tell = (frame) => told.push(written(frame));
  const stream = new Client('http://127.0.0.1:1', { WebSocket }).stream({ after: 7n }, { slotEnd: tell, rollback: tell, update: tell });
  socket.onopen();
  socket.onmessage({ data: '{"type":"resumed","id":2,"from_seq":7}' });
  const sent = all.slice(0, end);
  for (const data of [...sent, ...sent]) socket.onmessage({ data });
  stream.close();
  assert.deepEqual(told, sent);
}

const same = new Same();
for (const frame of frames()) {
  same.add(frame, written(frame));
  const kept = same.newer.size + same.older.size;
  assert(kept <= 2100, `${kept} frames are kept at ${written(frame)}`);
}
