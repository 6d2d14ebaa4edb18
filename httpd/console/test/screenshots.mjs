// Makes the pictures of the console for README and manual. Arguments: the address of a node without limits, the folder.
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

const pictures = {
  async overview(page) {
    await page.goto(`${address}/`);
    await filled(page, 22);
    await page.getByRole('button', { name: 'Kill & resume' }).click();
    await page.locator('#resume-result strong').waitFor();
  },
  async account(page) {
    await page.goto(`${address}/#/account/${await richest()}`);
    await page.locator('#changes tbody tr:nth-child(4)').waitFor({ timeout: 120_000 });
  },
  async phone(page) {
    await page.goto(`${address}/`);
    await filled(page, 12);
  },
};
const options = {
  overview: { colorScheme: 'dark', viewport: { width: 1200, height: 720 } },
  account: { colorScheme: 'light', viewport: { width: 1200, height: 930 } },
  phone: { colorScheme: 'dark', viewport: { width: 390, height: 844 } },
};

const browser = await launch();
await Promise.all(Object.entries(pictures).map(async ([name, show]) => {
  const { page } = await open(browser, address, options[name]);
  await show(page);
  await page.screenshot({ path: `${folder}/console-${name}.png`, animations: 'disabled' });
}));
await browser.close();
process.exit(0);
