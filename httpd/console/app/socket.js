// A socket to play with: messages go out as they are typed, and frames are shown as they come.

import { client } from './api.js';
import { h, say } from './dom.js';
import { commands, wscat } from './curl.js';

const keptFrames = 200;
const drawEvery = 200; // ms

/** @param {AbortSignal} signal */
export function socketPage(signal) {
  const frames = h('ol');
  const state = h('span.quiet', { role: 'status' }, 'not connected');
  const message = h('textarea', { id: 'message', rows: 3, spellcheck: 'false' }, '{"type":"ping","id":1}');
  const connecting = h('button', { type: 'button', onclick: () => (socket ? socket.close(1000) : connect()) }, 'Connect');
  const sending = h('button.primary', { type: 'button', onclick: send }, 'Send');
  const ready = h('div.row.choices', { role: 'group', 'aria-label': 'Ready messages' });
  let socket;
  let lines = [];
  let count = 0;
  let due = 0;
  let seq = 0n; // the newest that a frame told

  function connect(then) {
    say(state, 'connecting');
    connecting.textContent = 'Disconnect';
    socket = new WebSocket(`${client.base.replace(/^http/, 'ws')}/ws/accounts?mode=none`);
    socket.onopen = () => {
      say(state, 'connected, and silent until it is asked for something');
      then?.();
    };
    socket.onmessage = ({ data }) => {
      const told = data.match(/"seq":(\d+)/)?.[1];
      if (told) seq = BigInt(told);
      line('in', data);
    };
    socket.onclose = ({ code, reason }) => {
      socket = undefined;
      say(state, `closed with ${code}${reason && `: ${reason}`}`);
      connecting.textContent = 'Connect';
    };
  }

  function send() {
    if (!socket) return connect(send);
    if (socket.readyState !== WebSocket.OPEN) return undefined;
    line('out', message.value);
    return socket.send(message.value);
  }

  function line(way, text) {
    count++;
    lines = [{ way, text }, ...lines].slice(0, keptFrames);
    due ||= setTimeout(draw, drawEvery);
  }

  function draw() {
    due = 0;
    const items = lines.map(({ way, text }, i) => h('li', { class: way, value: count - i }, text));
    frames.replaceChildren(...(items.length > 0 ? items : [h('li.quiet', 'What is sent and what comes appears here, the newest first.')]));
  }

  function offer(name, make) {
    ready.append(h('button.small', { type: 'button', onclick: () => {
      message.value = make();
      send();
    } }, name));
  }

  // The messages name an account that has just been used.
  async function offerAll() {
    const [key] = await client.recent({ limit: 1, signal }).then(({ value }) => value.transactions[0].accounts, () => []);
    offer('ping', () => '{"type":"ping","id":1}');
    if (key) offer('subscribe to an account, with its state', () => `{"type":"subscribe","id":2,"pubkeys":["${key}"],"snapshot":true,"extended":true}`);
    if (key) offer('to a wallet and its tokens', () => `{"type":"subscribe","id":3,"wallets":["${key}"],"snapshot":true,"extended":true,"tokens":true}`);
    offer('to everything', () => '{"type":"subscribe","id":4,"extended":true}');
    offer('resume 100 updates ago', () => `{"type":"resume","id":5,"from_seq":${seq > 100n ? seq - 100n : 0n}}`);
    offer('unsubscribe from all', () => '{"type":"unsubscribe","id":6,"all":true}');
    offer('a wrong one', () => '{"type":"subscribe","id":7,"pubkeys":["nobody"]}');
  }

  signal.addEventListener('abort', () => {
    clearTimeout(due);
    socket?.close(1000);
  });
  offerAll();
  draw();
  return {
    title: 'WebSocket',
    element: h('div', h('h1', 'Try the WebSocket'),
      h('p', 'Choose a message, or write one. The node answers each; the ', h('a', { href: '/docs/streaming' }, 'streaming rules'), ' say what there is.'),
      ready, h('label', { for: 'message' }, 'Message'), message,
      h('div.row', sending, connecting, h('button', { type: 'button', onclick: () => { lines = []; draw(); } }, 'Clear'), state),
      h('div.frames', { tabindex: 0, role: 'region', 'aria-label': 'Frames, newest first' }, frames), commands(wscat('?mode=none'))),
  };
}
