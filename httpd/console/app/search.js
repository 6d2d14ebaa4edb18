// Tells what a person looks for: a slot, a signature or a public key, also by a well-known name.

import { keyOf } from './names.js';

const alphabet = '123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz';

/** How many bytes a base58 text stands for, or -1 if it is none. @param {string} text */
function base58Length(text) {
  let value = 0n;
  for (const letter of text) {
    const digit = alphabet.indexOf(letter);
    if (digit < 0) return -1;
    value = value * 58n + BigInt(digit);
  }
  const zeros = text.match(/^1*/)[0].length;
  return zeros + (value === 0n ? 0 : Math.ceil(value.toString(16).length / 2));
}

/**
 * @param {string} text as it was typed
 * @returns {{kind: 'slot' | 'public key' | 'signature' | '', href?: string, help: string}}
 */
export function classify(text) {
  const word = keyOf(text.trim()) ?? text.trim().replaceAll(',', '');
  if (word === '') return { kind: '', help: '' };
  if (/^(0|[1-9]\d{0,19})$/.test(word)) return { kind: 'slot', href: `#/block/${word}`, help: 'a slot' };
  const length = word.length > 90 ? 0 : base58Length(word);
  if (length === 32) return { kind: 'public key', href: `#/account/${word}`, help: 'a public key' };
  if (length === 64) return { kind: 'signature', href: `#/tx/${word}`, help: 'a signature' };
  if (length < 0) return { kind: '', help: 'not base58: 0, O, I and l do not occur in it' };
  return { kind: '', help: `neither: a public key has 32 bytes, a signature 64${length ? `, this ${length}` : ''}` };
}

/** Makes the form of the page's head work, and the key "/" lead to it. @param {HTMLFormElement} form */
export function enableSearch(form) {
  const [input, told] = [form.elements.query, form.querySelector('output')];
  input.addEventListener('input', () => { told.textContent = classify(input.value).help; });
  input.addEventListener('blur', () => { told.textContent = ''; });
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    const { href, help } = classify(input.value);
    told.textContent = help;
    if (!href) return;
    input.value = '';
    input.blur();
    location.hash = href;
  });
  document.addEventListener('keydown', (event) => {
    const typing = event.target.matches?.('input, textarea, select');
    if (event.key === '/' && !typing && !event.ctrlKey && !event.metaKey && !event.altKey) {
      event.preventDefault();
      input.focus();
      input.select();
    } else if (event.key === 'Escape' && event.target === input) {
      input.blur();
    }
  });
}
