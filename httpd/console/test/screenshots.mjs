// Makes pictures of the main pages of the console, on a desktop and on a phone, dark and light. Three become the manual's.
// Arguments: the address of a node without limits, the folder.
import { copyFileSync } from 'node:fs';
import { launch, open } from './browser.mjs';

const [address, folder] = process.argv.slice(2);
const tokenProgram = 'TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA';

// The wallet that has the most token accounts.
async function richest() {
  const { accounts } = await (await fetch(`${address}/api/accounts/program/${tokenProgram}?include=token&limit=10000`)).json();
  const wallets = new Map();
  for (const { token } of accounts) if (token) wallets.set(token.owner, (wallets.get(token.owner) ?? 0) + 1);
  return [...wallets].sort(([, a], [, b]) => b - a)[0][0];
}

// Waits until the charts hold some polls, two seconds apart, and the tree a fork.
const filled = (page, polls) => page.waitForFunction((ms) => document.querySelectorAll('.nodes .undone').length > 1 && performance.now() > ms, 2000 * polls, { timeout: 120_000 });

const shown = (page) => page.locator('main:not(:has([aria-busy], [role=status]:empty)) h1').waitFor({ state: 'attached' });

const pages = {
  async overview(page) {
    await page.goto(`${address}/`);
    await filled(page, 15);
    await page.getByRole('button', { name: 'Kill & resume' }).click();
    await page.locator('#resume-result strong').waitFor();
    await page.evaluate(() => { document.activeElement.blur(); scrollTo(0, 0); });
  },
  async account(page) {
    await page.goto(`${address}/#/account/${await richest()}`);
    await page.locator('#changes tbody tr:nth-child(4)').waitFor({ timeout: 120_000 });
  },
  async block(page) {
    const { slot } = await (await fetch(`${address}/api/blocks/latest?commitment=confirmed`)).json();
    await page.goto(`${address}/#/block/${slot}`);
    await shown(page);
  },
  async transaction(page) {
    await page.locator('main tbody a.key').first().click(); // of that block
    await page.locator('h1', { hasText: 'Transaction' }).waitFor();
    await shown(page);
  },
};
const devices = { desktop: { width: 1200, height: 800 }, phone: { width: 390, height: 844 } };

const browser = await launch();
for (const [device, viewport] of Object.entries(devices)) {
  for (const colorScheme of ['dark', 'light']) {
    const { page } = await open(browser, address, { viewport, colorScheme });
    for (const [name, show] of Object.entries(pages)) {
      await show(page);
      await page.screenshot({ path: `${folder}/${name}-${device}-${colorScheme}.png`, animations: 'disabled' });
    }
    await page.close();
  }
}
await browser.close();
for (const [picture, name] of [['overview-desktop-dark', 'overview'], ['account-desktop-light', 'account'], ['overview-phone-dark', 'phone']]) {
  copyFileSync(`${folder}/${picture}.png`, new URL(`../manual/console-${name}.png`, import.meta.url));
}
process.exit(0);
