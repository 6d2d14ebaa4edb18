// Lets a test speak through npm's ws, as an ordinary program would use it.
//
// Orders come on the standard input, one JSON object a line: {"do":"open","id":1,"url":"ws://…"},
// and say (with text), stall, goon, taken (with count), leave and cut for a connection that is open.
// What happens is told on the standard output, one line each, the connection's id first: open with
// the local port, text with a message, gone with the close code and reason. While `window` messages
// of a connection are told and not taken nothing is read from it. The end of the input ends all.
'use strict';
const WebSocket = require('ws');
const lines = require('readline').createInterface({ input: process.stdin });
const conns = new Map();
const window = 4000;

let waiting = []; // what was told in this turn of the loop
function tell(id, what) {
  if (waiting.length === 0) {
    setImmediate(() => {
      process.stdout.write(waiting.join(''));
      waiting = [];
    });
  }
  waiting.push(id + ' ' + what + '\n');
}

function open(id, url) {
  const conn = new WebSocket(url);
  conns.set(id, conn);
  conn.on('open', () => tell(id, 'open ' + conn._socket.localPort));
  conn.ahead = 0; // told and not taken
  conn.on('message', (data, isBinary) => {
    tell(id, (isBinary ? 'binary ' : 'text ') + data);
    conn.ahead++;
    readOrNot(conn);
  });
  conn.on('error', () => {}); // 'close' follows
  conn.on('close', (code, reason) => {
    conns.delete(id);
    tell(id, 'gone ' + code + ' ' + reason);
  });
}

function readOrNot(conn) {
  if (conn.stalled || conn.ahead >= window) conn.pause();
  else conn.resume();
}

lines.on('line', (line) => {
  const order = JSON.parse(line);
  if (order.do === 'open') return open(order.id, order.url);
  const conn = conns.get(order.id);
  if (!conn) return; // gone meanwhile, which was told
  switch (order.do) {
    case 'say': if (conn.readyState === WebSocket.OPEN) conn.send(order.text); break;
    case 'stall': conn.stalled = true; readOrNot(conn); break;
    case 'goon': conn.stalled = false; readOrNot(conn); break;
    case 'taken': conn.ahead -= order.count; readOrNot(conn); break;
    case 'leave': conn.close(1000); break;
    case 'cut': conn.terminate(); break;
  }
});
lines.on('close', () => process.exit(0));
tell(0, 'ready ' + require('ws/package.json').version);
