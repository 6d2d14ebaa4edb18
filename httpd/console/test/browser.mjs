// A Chromium for tests of the console, which watches what its pages must not do.
import { chromium } from 'playwright-core';

export const patience = 90_000; // ms; decides only when a test fails

/** Starts the browser. CHROMIUM names it. */
export const launch = () => chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: ['--no-sandbox'] });

// What the browser itself writes of an answer that is no success, which pages show in words; and of the plain request by which a stream learns why
// its handshake was refused, which is 400 where it was not.
const told = /^Failed to load resource: the server responded with a status of (404|429|503|400 .*\/api\/ws\/accounts)|Unexpected response code: 429 /;

/**
 * Opens a page that is watched.
 * @returns {Promise<{page: import('playwright-core').Page, wrongs: string[], mayFail: boolean}>} mayFail: the node is away on purpose
 */
export async function open(browser, address, options = {}) {
  const page = await browser.newPage({ viewport: { width: 1280, height: 900 }, ...options });
  page.setDefaultTimeout(patience);
  const watched = { page, wrongs: [], mayFail: false };
  page.on('console', (message) => {
    const text = `${message.text()} (${message.location().url})`;
    if (message.type() === 'error' && !told.test(text) && !watched.mayFail) watched.wrongs.push(text);
  });
  page.on('pageerror', (error) => watched.wrongs.push(error.stack));
  page.on('request', (request) => { if (!request.url().startsWith(`${address}/`)) watched.wrongs.push(`a request to ${request.url()}`); });
  return watched;
}
