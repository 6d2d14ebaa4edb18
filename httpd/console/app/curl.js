// The command that gives the same data as a view.

import { h, announce } from './dom.js';

const quoted = (word) => (/^[\w:/.-]+$/.test(word) ? word : `'${word}'`);

/** The curl line for a path below /api. @param {string} path */
export const curl = (path) => command(`curl ${quoted(`${location.origin}/api${path}`)}`);

const port = document.documentElement.dataset.rpc; // undefined: the node does not speak JSON-RPC

/** The line of the method of JSON-RPC that answers the same. @param {string} params JSON */
export const rpc = (method, params) => port && h('details', h('summary', `JSON-RPC: ${method}`),
  command(`curl ${location.protocol}//${location.hostname}:${port} --json '{"jsonrpc":"2.0","id":1,"method":"${method}","params":${params}}'`));

/** The line that follows a stream; wscat is in npm. */
export const wscat = (query = '') => command(`npx wscat -c ${quoted(`${location.origin.replace(/^http/, 'ws')}/api/ws/accounts${query}`)}`);

function command(text) {
  const button = h('button.small', { type: 'button', 'aria-label': `Copy: ${text}`, onclick: copy }, 'copy');
  async function copy() {
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = 'copied';
      announce('The command was copied.');
    } catch {
      getSelection().selectAllChildren(button.previousElementSibling); // no clipboard, as without TLS: the line is marked instead
      button.textContent = 'marked';
      announce('The command is marked.');
    }
    setTimeout(() => { button.textContent = 'copy'; }, 2000);
  }
  return h('div.command', h('code', text), button);
}

/** The commands of a view, under one heading. */
export const commands = (...lines) => h('section.commands', h('h2', 'The same on the command line'), ...lines);
