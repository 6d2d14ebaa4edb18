// How figures and names are written.

import { nodeTime } from './api.js';
import { h, say } from './dom.js';
import { nameOf } from './names.js';
import { figures } from './pulse.js';

const exact = new Intl.NumberFormat('en-US', { maximumFractionDigits: 0 });

/** A whole number with commas. Of a BigInt no digit is lost. @param {bigint | number} n */
export const number = (n) => exact.format(n);

/** A signed number. @param {bigint} n */
export const change = (n) => (n > 0n ? `+${number(n)}` : number(n).replace('-', '−'));

/** A token amount, a string of digits, with its decimals. */
export function amount(digits, decimals) {
  if (decimals == null) return `${number(BigInt(digits))} base units`;
  const negative = digits.startsWith('-');
  const padded = digits.replace('-', '').padStart(decimals + 1, '0');
  const whole = padded.slice(0, padded.length - decimals);
  const rest = padded.slice(padded.length - decimals).replace(/0+$/, '');
  return `${negative ? '−' : ''}${number(BigInt(whole))}${rest && `.${rest}`}`;
}

/** A rate or a count that may be large, in at most four digits. @param {number} n */
export function brief(n) {
  if (n < 10) return String(Math.round(n * 10) / 10);
  if (n < 10_000) return number(Math.round(n));
  return n < 1e6 ? `${(n / 1000).toFixed(1)} k` : `${(n / 1e6).toFixed(2)} M`;
}

/** A span of time. @param {number} ms */
export function duration(ms) {
  if (ms < 1000) return `${Math.max(0, Math.round(ms))} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(1)} s`;
  const minutes = Math.floor(ms / 60_000);
  if (minutes < 60) return `${minutes} m ${Math.floor(ms / 1000) % 60} s`;
  return minutes < 2880 ? `${Math.floor(minutes / 60)} h ${minutes % 60} m` : `${Math.floor(minutes / 1440)} d`;
}

/** @param {number} n */
export const bytes = (n) => (n < 2 ** 30 ? `${brief(n / 2 ** 20)} MiB` : `${(n / 2 ** 30).toFixed(2)} GiB`);

/** How long before the newest block's a time of the ledger was: that of a simulated one is not ours. @param {string | null} timestamp */
export function age(timestamp) {
  const place = h('span', '–');
  const tell = () => say(place, duration(nodeTime() - 1000 * (figures.now.get('ledgerd_block_age_seconds') ?? 0) - Date.parse(timestamp)));
  if (timestamp === null) return place;
  tell();
  if (figures.at === 0) figures.addEventListener('polled', tell, { once: true });
  return place;
}

/** A time of the ledger and its age. */
export const moment = (timestamp) => (timestamp === null ? 'not recorded' : [`${timestamp} · `, age(timestamp), ' ago']);

/** The time of day of a moment. @param {number} ms since 1970 */
export const clock = (ms) => new Date(ms).toLocaleTimeString('en-GB');

/** The ends of a long name. */
export const ends = (text) => `${text.slice(0, 6)}…${text.slice(-4)}`;

/** Links to the pages of this console. An account that has a name is shown by what people call it. */
export const accountLink = (key) => {
  const name = nameOf(key);
  return key ? h('a', { href: `#/account/${key}`, class: 'key', title: name && key }, name ?? key) : 'not known';
};
export const transactionLink = (signature) => h('a', { href: `#/tx/${signature}`, class: 'key' }, signature);
export const blockLink = (slot) => h('a', { href: `#/block/${slot}`, class: 'slot' }, number(slot));
