// Lets a test speak through npm's ws, as an ordinary program would use it.
//
// Each connection to the Unix socket that the argument names is one client. The test's first line is the URL; of the others
// "leave" closes, any other is a message. What happens is told in lines: open with the local port, text with a message, and at the
// end gone with the close code and reason. While the test reads nothing, nothing is read from the WebSocket. When the test drops
// its connection, that of the WebSocket is dropped too.
'use strict';
const WebSocket = require('ws');
const readline = require('readline');

function serve(test) {
  let conn;
  let corked = false;
  function tell(line) {
    if (!corked) { // one write for all that is told in a turn of the loop
      corked = true;
      test.cork();
      setImmediate(() => { corked = false; test.uncork(); });
    }
    if (!test.write(line + '\n')) conn.pause();
  }
  function open(url) {
    conn = new WebSocket(url);
    conn.on('open', () => tell('open ' + conn._socket.localPort));
    conn.on('message', (data, isBinary) => tell((isBinary ? 'binary ' : 'text ') + data));
    conn.on('error', () => {}); // 'close' follows
    conn.on('close', (code, reason) => { tell('gone ' + code + ' ' + reason); test.end(); });
  }
  test.on('drain', () => conn.resume());
  test.on('error', () => {}); // 'close' follows
  test.on('close', () => { if (conn) conn.terminate(); });
  const lines = readline.createInterface({ input: test });
  lines.on('error', () => {}); // that of test
  lines.on('line', (line) => {
    if (!conn) open(line);
    else if (line === 'leave') conn.close(1000);
    else if (conn.readyState === WebSocket.OPEN) conn.send(line);
  });
}

require('net').createServer(serve).listen(process.argv[2], () => console.log('ready ' + require('ws/package.json').version));
