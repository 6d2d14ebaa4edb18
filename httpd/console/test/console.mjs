// Drives the console in a browser, for the Go test that starts its nodes. Arguments: the address of a node with forks and without
// limits, which speaks JSON-RPC, that of one with few requests a minute, which does not, and that of a balancer before two that have 2,000 and 300 accounts. A line "stop", "continue", "kill" or "start" on the standard output asks the test to do that to the
// first node; it answers with a line.
import assert from 'node:assert/strict';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { Budget } from '../app/budget.js';
import { classify } from '../app/search.js';
import { Lag } from '../app/lag.js';
import { nameOf } from '../app/names.js';
import { Tally } from '../app/tally.js';
import { launch, open } from './browser.mjs';

const [address, limited, balanced] = process.argv.slice(2);
const answers = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const tokenProgram = 'TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA';
const token2022 = 'TokenzQdBNbLqP5VEhdkAS6EPFLC1PHnBqCXEpPxuEb';
const nobody = 'SysvarRent111111111111111111111111111111111'; // no account of the simulator
const here = (path) => new URL(path, import.meta.url);
const api = async (path) => (await fetch(`${address}/api${path}`)).json();

// The token account that holds most of its mint, which is not soon closed.
async function richest() {
  const { accounts } = await api(`/accounts/program/${tokenProgram}?include=token&limit=1000`);
  return accounts.filter(({ token }) => token).reduce((a, b) => (BigInt(b.token.amount) > BigInt(a.token.amount) ? b : a));
}

async function told(what) {
  console.log(what);
  await answers.next();
}

function rules() {
  const now = 1_000_000;
  const interval = (limit, remaining, seconds) => Object.assign(new Budget(), { limit, remaining, reset: now + 1000 * seconds }).interval(now);
  assert.equal(interval(0, 2147483647, 60), 2000, 'without limits');
  assert.equal(interval(100, 99, 60), 5000, 'with a fresh budget');
  assert.equal(interval(1000, 60, 1200), 30_000, 'with little left of an hour');
  assert.equal(interval(100, 20, 40), 40_000, 'with nothing but the reserve');
  const spent = Object.assign(new Budget(), { limit: 100, remaining: 60, reset: 0 });
  assert.deepEqual([90, 60, 40].map((before) => spent.rest(before)), [150_000, 0, 0], 'after what took 30 requests, nothing, or until the budget was full again');
  const clocks = new Budget();
  const answered = (clock, date) => clocks.note(new Headers({ 'X-RateLimit-Limit': 100, 'X-RateLimit-Remaining': 60, 'X-RateLimit-Reset': 1060, ...date }), 1000 * clock);
  const headers = { Date: new Date(1_000_000).toUTCString() };
  for (const clock of [1000, 1002, 1000 - 3600, 1000 + 3600]) {
    answered(clock, headers);
    assert.equal(clocks.interval(1000 * clock), 5000, `a minute in which 40 requests may be made, by a clock of ${clock} s`);
  }
  assert.equal(clocks.ahead, 3600_000);
  answered(1000 + 3600, { Date: new Date(0).toUTCString(), 'Cache-Control': 'public, immutable', 'X-RateLimit-Remaining': 1 });
  assert.deepEqual([clocks.ahead, clocks.remaining], [3600_000, 60], 'an answer that the browser has kept says nothing of now');
  for (const [at, caching] of [[1001, 'public, immutable'], [1000, 'no-cache']]) { // the node's clock may be set back
    answered(1001, { Date: new Date(1000 * at).toUTCString(), 'Cache-Control': caching, 'X-RateLimit-Remaining': at });
    assert.deepEqual([clocks.ahead, clocks.remaining], [0, at], 'any other one does');
  }
  answered(1000, {});
  assert.equal(clocks.ahead, 0, 'an answer that tells no time');
  const key = '11111111111111111111111111111111';
  for (const [text, kind] of [['0', 'slot'], [' 12,345 ', 'slot'], ['012', ''], [key, 'public key'], [`${key}1`, ''], [tokenProgram, 'public key'], [' token program', 'public key'],
    [key + key, 'signature'], [`${tokenProgram}0`, ''], ['', '']]) assert.equal(classify(text).kind, kind, text);
  assert.deepEqual([key, tokenProgram, key + key].map(nameOf), ['System Program', 'Token Program', undefined]);
  const tally = new Tally(10n);
  [11n, 12n, 12n, 15n].forEach((seq) => tally.take(seq));
  tally.close(17n);
  assert.deepEqual([tally.received, tally.twice, tally.missed], [3n, 1n, 4n]);
  const lag = new Lag();
  const late = [[0, 1500], [1000, 2400], [2000, 9400], [3000, 4300]].map(([sent, came]) => lag.of(new Date(sent).toISOString(), came));
  assert.deepEqual(late, [0, 0, 6000, 0], 'a clock that differs is no lateness');
  const app = readdirSync(here('../app')).filter((name) => !name.endsWith('.txt')).map((name) => here(`../app/${name}`)); // a page loads no licence
  const size = [...app, here('../client/ledgerd.js')].reduce((sum, file) => sum + statSync(file).size, 0);
  assert(size < 180 * 1024, `the console has ${size} bytes`);
  assert(readFileSync(here('../node_modules/uplot/dist/uPlot.iife.min.js')).equals(readFileSync(here('../app/uplot.min.js'))), "uPlot is not the package's");
  const style = readFileSync(here('../app/style.css'), 'utf8');
  const { version } = JSON.parse(readFileSync(here('../node_modules/uplot/package.json')));
  assert(style.includes(`/* What uPlot ${version} needs of its own style sheet`), `the rules for uPlot are to be compared with its style sheet of ${version}`);
  for (const [, before, content] of `${style}${readFileSync(here('../docs/docs.css'), 'utf8')}`.matchAll(/\{([^}]*)content: ("[^"]+") \/ /g)) {
    assert(before.includes(`content: ${content};`), `a browser without alternative texts shows nothing of ${content}`);
  }
}

// Searches as a person does, and returns when the page has the heading.
async function search(page, text, heading) {
  await page.keyboard.press('/');
  await page.keyboard.type(text);
  await page.keyboard.press('Enter');
  await page.locator('h1', { hasText: heading }).waitFor();
}

// Cuts the wire of the tape. A page that has fallen behind begins its tape anew, and takes no click meanwhile.
async function kill(page) {
  const told = page.locator('#resume-result');
  while (await told.textContent() === '') await page.getByRole('button', { name: 'Kill & resume' }).click();
}

const rows = (page, section, count) => page.waitForFunction(([where, n]) => document.querySelectorAll(`${where} tbody tr`).length === n, [section, count]);
const slotOf = async (page, level) => Number((await page.locator(`#level-${level} b`).textContent()).replaceAll(',', ''));

// Draws a chart of twenty minutes in the page, which begin and end where there is a label: the boxes of the labels on its canvas, and what it tells of the place that the pointer is at.
async function drawn([width, most]) {
  const [{ chart, range }, { brief }] = [await import('/console/charts.js'), await import('/console/format.js')];
  const frame = () => new Promise((resolve) => { requestAnimationFrame(resolve); });
  const leave = new AbortController();
  let aimed = '';
  const { element, draw } = chart('a test', (n) => `${brief(n)} MiB`, (text) => { aimed = text; }, leave.signal);
  let labels = [];
  const { fillText, clearRect } = CanvasRenderingContext2D.prototype;
  Object.assign(CanvasRenderingContext2D.prototype, {
    clearRect(...box) {
      clearRect.apply(this, box);
      if (element.contains(this.canvas)) labels = [];
    },
    fillText(text, x, y) {
      fillText.call(this, text, x, y);
      const { actualBoundingBoxLeft: left, actualBoundingBoxRight: right, actualBoundingBoxAscent: up, actualBoundingBoxDescent: down } = this.measureText(text);
      if (element.contains(this.canvas)) labels.push({ text, left: x - left, right: x + right, top: y - up, bottom: y + down });
    },
  });
  const { ms } = range;
  range.ms = 60 * 60_000;
  element.style.width = `${width}px`;
  document.getElementById('main').append(element);
  const five = 5 * 60_000;
  draw([1, 2, 3, 4, 5].map((n) => [five * Math.floor(Date.now() / five / 4) * 4 + five * (n - 5), most * n / 5]));
  await frame();
  const over = element.querySelector('.u-over');
  const { left, top } = over.getBoundingClientRect();
  over.dispatchEvent(new MouseEvent('mousemove', { clientX: left + 1, clientY: top + 9, bubbles: true }));
  await frame();
  Object.assign(CanvasRenderingContext2D.prototype, { fillText, clearRect });
  const { width: right, height } = element.querySelector('canvas');
  leave.abort();
  element.remove();
  range.ms = ms;
  return { labels, size: { width: right, height }, aimed };
}

const steps = {
  async overview({ page }) {
    await page.goto(`${address}/`);
    await page.locator('#health[data-state=healthy]').waitFor();
    await page.waitForFunction(() => document.querySelectorAll('.nodes .block').length > 20);
    await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    assert.equal(await page.evaluate(() => document.activeElement.id), 'main', 'the link that skips the head');
    await page.locator('.tile', { hasText: 'transactions / s' }).locator('.uplot').waitFor();
    for (const name of ['updates / s', 'transactions / s', 'memory']) await page.locator('.tile', { hasText: name }).filter({ hasText: /\d/ }).waitFor();
    const sizes = ['accounts', 'transactions', 'history', 'clients', 'program and uncollected'].map((name) => `${name} [\\d.]+ [MG]iB`).join(' · ');
    const parts = page.locator('.tiles > small', { hasText: new RegExp(`^${sizes}$`) });
    await parts.waitFor();
    const height = async (one) => (await one.boundingBox()).height;
    assert(await height(parts) < 30, 'the parts of the memory are a line');
    assert(await height(page.locator('.tile', { hasText: 'memory' })) < 180, 'charts are not stretched by it');
  },

  // Of the labels that a chart writes on its canvas, none covers another and none is cut off.
  async 'labels of charts keep clear of each other'({ page }) {
    for (const [width, most] of [[150, 8], [280, 59], [280, 123_456_789]]) {
      const { labels, size, aimed } = await page.evaluate(drawn, [width, most]);
      const apart = (a, b) => a.right < b.left || b.right < a.left || a.bottom < b.top || b.bottom < a.top;
      const wrong = labels.filter((a, at) => a.left < 0 || a.right > size.width || a.top < 0 || a.bottom > size.height || !labels.slice(at + 1).every((b) => apart(a, b)));
      assert.deepEqual(wrong, [], `of ${JSON.stringify(labels)} on ${JSON.stringify(size)}`);
      for (const kind of [/^\d\d:\d\d$/, /^0 MiB$/, /^[1-9][\d.,]*( [kM])? MiB$/]) assert(labels.some(({ text }) => kind.test(text)), `${kind} of ${JSON.stringify(labels)}`);
      assert.match(aimed, /^[\d.,]+ ([kM] )?MiB at \d\d:\d\d:00$/, 'what the pointer is at');
    }
  },

  async 'a fork fades in the tree'({ page }) {
    await page.waitForFunction(() => [...document.querySelectorAll('.nodes .undone')].some((block) => {
      const { opacity } = getComputedStyle(block);
      return opacity < 0.99 && opacity > 0.5;
    }));
    assert.match(await page.locator('.tree').getAttribute('aria-label'), /[1-9]\d* undone/);
    assert.match(await page.locator('.tile', { hasText: 'last rollback' }).locator('b').textContent(), /^−[1-9]/);
  },

  async 'no slot before the first is written'({ page }) {
    const texts = await page.evaluate(async () => {
      const [{ treeView }, { ForkTree }] = [await import('/console/treeview.js'), await import('/console/forktree.js')];
      const [tree, leave] = [new ForkTree(), new AbortController()];
      const view = treeView(tree, leave.signal);
      document.getElementById('main').append(view);
      for (let slot = 1n; slot < 8n; slot++) tree.extend(slot, slot);
      while (!view.querySelector('.tree text')) await new Promise((resolve) => { requestAnimationFrame(resolve); });
      leave.abort();
      view.remove();
      return [...view.querySelectorAll('.tree text')].map((text) => text.textContent);
    });
    assert.deepEqual(texts, ['5']);
  },

  async 'the tape runs, is filtered and held'({ page }) {
    const first = page.locator('.tape tbody a.key').first();
    await first.waitFor();
    await page.locator('#tape-filter').fill(tokenProgram);
    await page.waitForFunction(() => [...document.querySelectorAll('.tape tbody tr')].every((row) => row.className === 'mark' || row.cells[3]?.textContent !== ''));
    await page.locator('#tape-filter').fill('');
    await page.getByRole('button', { name: 'Pause' }).click();
    const seqs = () => page.$$eval('.tape tbody tr', (all) => all.map((row) => row.textContent));
    const [held, slot] = [await seqs(), await slotOf(page, 'processed')];
    await page.waitForFunction((n) => Number(document.querySelector('#level-processed b').textContent.replaceAll(',', '')) > n + 3, slot);
    assert.deepEqual(await seqs(), held);
    await page.getByRole('button', { name: 'Go on' }).click();
  },

  async 'kill and resume'({ page }) {
    await kill(page);
    const verdict = page.locator('#resume-result strong');
    await verdict.waitFor();
    assert.equal(await verdict.textContent(), '0 missed');
    assert.match(await page.locator('#resume-result').textContent(), /: [1-9][\d,]* came, 0 twice/);
  },

  async 'search of each kind'({ page }) {
    const block = await api('/blocks/latest?commitment=confirmed'); // which no fork undoes
    const { transactions: [{ signature, accounts }] } = await api('/transactions/recent?limit=1&commitment=confirmed');
    await search(page, String(block.slot), 'Slot');
    await page.locator('.facts', { hasText: block.blockhash }).waitFor();
    await search(page, signature, 'Transaction');
    await page.locator('.keys a', { hasText: accounts[0] }).waitFor();
    await page.locator('.facts .badge', { hasText: 'finalized' }).waitFor(); // which it was not when it was asked for
    await search(page, 'token program', 'Token Program');
    await page.locator('.facts', { hasText: 'executable' }).waitFor();
    await page.keyboard.press('/');
    await page.keyboard.type('nobody\n');
    await page.locator('#kind', { hasText: 'neither' }).waitFor();
    await page.locator('#query').fill('');
  },

  async 'commands have a form in JSON-RPC'({ page }) {
    const { slot } = await api('/blocks/latest?commitment=confirmed');
    const { transactions: [{ signature }] } = await api('/transactions/recent?limit=1&commitment=confirmed');
    for (const [at, name, methods] of [['block', String(slot), 'getBlock'], ['tx', signature, 'getSignatureStatuses'], ['account', tokenProgram, 'getAccountInfo getSignaturesForAddress']]) {
      await page.goto(`${address}/#/${at}/${name}`);
      const commands = page.locator('.commands', { hasText: name });
      await commands.locator('summary').first().click();
      await commands.locator('details code').first().waitFor();
      const asked = [];
      for (const text of await commands.locator('details code').allTextContents()) {
        const [, url, body] = text.match(/^curl (\S+) --json '(.*)'$/);
        const answer = await (await fetch(url, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body })).json();
        assert(answer.result, `${text} is answered ${JSON.stringify(answer)}`);
        asked.push(JSON.parse(body).method);
      }
      assert.equal(asked.join(' '), methods);
    }
  },

  async 'lists go on page by page'({ page }) {
    await rows(page, '#owned-list', 25);
    await page.locator('#owned-list').getByRole('button', { name: 'More' }).click();
    await rows(page, '#owned-list', 50);
    await page.locator('#owned .tape .slot').first().waitFor(); // its accounts change
    await rows(page, '#history', 25);
    await page.locator('#history').getByRole('button', { name: 'More' }).click();
    await rows(page, '#history', 50);
    await page.goto(`${address}/#/blocks`);
    await page.reload();
    await page.waitForFunction(() => /–$/.test(document.querySelector('main tbody').rows[20]?.innerText)); // it came before the page
    await page.waitForFunction(() => / m?s ago$/.test(document.querySelector('main tbody').rows[0].innerText));
    await page.goto(`${address}/#/transactions`);
    await rows(page, 'main', 50);
    await page.waitForFunction(() => /\d m?s$/.test(document.querySelector('main tbody').rows[0].cells[5].innerText)); // of a ledger whose time is not ours
    await page.getByRole('button', { name: 'More' }).click();
    await rows(page, 'main', 100);
  },

  // While a stream reads what came before, heartbeats of the newest slot come, too.
  async 'a block that came before the page has no time'({ page }) {
    await page.routeWebSocket(/accounts\?extended=true&mode=none$/, (socket) => {
      const node = socket.connectToServer();
      node.onMessage((frame) => {
        socket.send(frame);
        const [, seq] = frame.match(/"type":"slot_end".*"seq":(\d+)/) ?? [];
        if (seq) socket.send(`{"type":"heartbeat","slot":399999999,"seq":${seq},"timestamp":"${new Date().toISOString()}"}`);
      });
    });
    await page.goto(`${address}/#/blocks`);
    await page.waitForFunction(() => /–$/.test(document.querySelector('main tbody').rows[20]?.innerText));
    await page.waitForFunction(() => / m?s ago$/.test(document.querySelector('main tbody').rows[0].innerText));
  },

  async 'who holds a mint of either token program'({ page }) {
    for (const program of [tokenProgram, token2022]) {
      const { accounts } = await api(`/accounts/program/${program}?include=token`);
      await page.goto(`${address}/#/account/${accounts.find(({ token }) => token).token.mint}`);
      await page.locator('#holders tbody tr').first().waitFor();
    }
  },

  async 'the largest holders of a mint are told, and again as blocks come'({ page }) {
    const { token: { mint } } = await richest();
    const [without, holders] = [await page.context().browser().newPage(), page.locator('#holders')];
    let asked = 0; // of a node that does not list them
    await without.route(/holders/, (route) => {
      asked++;
      return route.fulfill({ status: 404, json: { error: 'Resource not found', details: 'account not indexed' } });
    });
    await without.goto(`${address}/#/account/${mint}`);
    await without.locator('#holders').getByText('--index-mints').waitFor();
    await page.route(/holders/, (route) => route.fulfill({ status: 503, headers: { 'Retry-After': '1' }, json: { error: 'Service unavailable', details: 'too many hold it' } }));
    await page.goto(`${address}/#/account/${mint}`);
    await holders.locator('.refusal', { hasText: 'too many hold it' }).waitFor(); // which is not tried again at once
    await page.unroute(/holders/);
    await holders.locator('p', { hasText: /^(all|the largest) \d+$/ }).waitFor(); // it follows the blocks
    assert.equal(asked, 1, 'questions that no block gives an answer to');
    await without.close();
    const command = await holders.locator('.command code').textContent();
    const { holders: all } = await (await fetch(command.match(/'(.*)'/)[1])).json();
    assert(all.length > 0 && all.every(({ token }) => token.mint === mint), command);
    assert(all.every(({ token }, i) => i === 0 || BigInt(token.amount) <= BigInt(all[i - 1].token.amount)), command);
  },

  async 'an account is called what it is, and has lists of what it can have'({ page }) {
    const { pubkey, token } = await richest();
    const pages = [[token.mint, 'Mint', 'Holders, Data, Transactions, Live changes'], [pubkey, 'Token account', 'Data, Transactions, Live changes'],
      [tokenProgram, 'Token Program', 'Accounts of this program, Live changes of its accounts, Transactions'], [token.owner, 'Account', 'Tokens, Transactions, Live changes'],
      [nobody, 'Rent Sysvar', 'Tokens, Transactions, Live changes']];
    for (const [key, name, lists] of pages) {
      await page.goto(`${address}/#/account/${key}`);
      await page.locator('[data-kind]:not(:has([aria-busy]))').waitFor();
      for (const list of ['#tokens', '#history']) await page.locator(`${list} [role=status]`, { hasText: /./ }).waitFor({ state: 'attached' });
      assert.equal(await page.title(), `${name} · ledgerd`);
      assert.equal(await page.locator('h1').textContent(), name);
      assert.equal((await page.locator('main section:not(.commands) h2:visible').allTextContents()).join(', '), lists, name);
    }
    for (const text of ['No token account that is held names it', 'No transaction that is held names it', 'The next change of its lamports']) await page.locator('main', { hasText: text }).waitFor();
    await page.evaluate(async () => {
      const { tree } = await import('/console/pulse.js');
      const [told, { slot }] = [tree.rollback, tree.tip];
      while (tree.rollback === told || tree.tip.slot < slot + 8n) await new Promise((resolve) => { tree.addEventListener('change', resolve, { once: true }); });
    });
    assert.equal(await page.locator('thead:visible').count(), 0, 'headings of nothing, also after a rollback');
  },

  async 'slots that are skipped or still to come'({ page }) {
    await page.goto(`${address}/#/`);
    await page.locator('.marks .skipped').first().waitFor();
    await page.evaluate(() => document.querySelector('.marks .skipped').dispatchEvent(new MouseEvent('click', { bubbles: true }))); // it moves
    await page.locator('.refusal', { hasText: 'This slot is skipped' }).waitFor();
    const { slot } = await api('/blocks/latest');
    await page.goto(`${address}/#/block/${slot + 40}`);
    await page.locator('.refusal', { hasText: 'not yet produced' }).waitFor();
    await page.locator('main', { hasNotText: 'not yet produced' }).waitFor();
  },

  async 'an account changes'({ page }) {
    const payers = (await api('/transactions/recent?limit=500')).transactions.map(({ accounts }) => accounts[0]);
    const times = (key) => payers.filter((payer) => payer === key).length;
    await page.goto(`${address}/#/account/${payers.reduce((a, b) => (times(b) > times(a) ? b : a))}`);
    await page.locator('#changes tbody .slot').first().waitFor();
    await page.locator('.balance', { hasText: /\d/ }).waitFor();
    const newest = () => page.locator('#history tbody tr').first().getAttribute('data-key');
    await page.waitForFunction((key) => document.querySelector('#history tbody tr').dataset.key !== key, await newest());
    const keys = await page.$$eval('#history tbody tr', (all) => all.map((row) => row.dataset.key));
    const held = (await api(`/account/${page.url().split('/').at(-1)}/transactions?limit=1000&commitment=confirmed`)).transactions.map(({ signature }) => signature);
    assert.deepEqual(keys, held.slice(held.indexOf(keys[0]), held.indexOf(keys[0]) + keys.length), 'the transactions of an account, none left out');
  },

  async 'the node goes away and comes back'(watched) {
    const { page } = watched;
    watched.mayFail = true;
    for (const [what, state] of [['stop', 'visible'], ['continue', 'hidden']]) { // its machine hangs: connections are made, and nothing is answered
      await told(what);
      await page.locator('#notice', { hasText: 'cannot be reached' }).waitFor({ state });
    }
    const newest = await page.locator('#changes tbody .slot').first().textContent();
    await told('kill');
    await page.locator('#notice', { hasText: 'cannot be reached' }).waitFor();
    assert.equal(await page.locator('#health').textContent(), 'away');
    await told('start');
    await page.locator('#notice').waitFor({ state: 'hidden' });
    await page.locator('#changes', { hasText: 'live, resumed' }).waitFor();
    await page.waitForFunction((slot) => document.querySelector('#changes tbody .slot').textContent !== slot, newest);
    await page.locator('#health[data-state=healthy]').waitFor();
    watched.mayFail = false;
  },

  async 'a socket to play with'({ page }) {
    await page.goto(`${address}/#/socket`);
    for (const [name, frame] of [['ping', '"type":"pong"'], ['with its state', '"snapshot_end"'], ['a wrong one', '"type":"error"']]) {
      await page.getByRole('button', { name }).click();
      await page.locator('.frames .in', { hasText: frame }).first().waitFor();
    }
  },

  // The node is alone, so a cluster's figures are put into its own. They stay for the page in accessible.
  async 'a cluster tells its story'({ page }) {
    await page.goto(`${address}/#/cluster`);
    await page.locator('main', { hasText: 'This node is alone' }).waitFor();
    assert(await page.locator('#of-cluster').isHidden(), 'a page that a node alone does not have');
    const [a, b, c] = ['0a', '0b', '0c'].map((pair) => pair.repeat(16));
    let [writer, epoch, took] = [a, 1, {}];
    await page.route('**/api/metrics', async (route) => {
      const response = await route.fetch();
      const figures = { epoch, peers: 3, connected: 1, lag_seconds: 0.4, 'role{role="reader"}': 1, 'role{role="writer"}': 0, 'members{role="writer"}': 1,
        'members{role="standby"}': 1, 'members{role="reader"}': 2, [`writer_start_time_seconds{node="${writer}"}`]: 1_700_000_000 + epoch,
        [`member_lag_seconds{node="${c}",role="standby"}`]: 0.25, ...took };
      await route.fulfill({ response, body: await response.text() + Object.entries(figures).map(([name, value]) => `ledgerd_cluster_${name} ${value}\n`).join('') });
    });
    for (const text of [`Node ${a} has written the log since`, 'It is the first writer', /1 would take over; 2 follow only/, 'It knows that it holds all of the log', 'Nothing. A new writer', /0c0c0c…0c0c\s*standby\s*250 ms/]) {
      await page.locator('main', { hasText: text }).waitFor();
    }
    [writer, epoch] = [b, 2];
    await page.locator('main tbody', { hasText: 'Node 0b0b0b…0b0b became the writer, in term 2.' }).waitFor();
    await page.locator('main', { hasText: 'It took over from the writer of term 1.' }).waitFor();
    took = { [`handover_slot{block="last",node="${a}"}`]: 1234, [`handover_slot{block="first",node="${b}"}`]: 0, [`handover_time_seconds{block="last",node="${a}"}`]: 1_700_000_002 };
    await page.locator('main', { hasText: /It took over from node (0a){16}, whose last block was slot 1,234, at \d\d:\d\d:\d2. It has written no block yet/ }).waitFor();
    took = { ...took, [`handover_slot{block="first",node="${b}"}`]: 1236, [`handover_time_seconds{block="first",node="${b}"}`]: 1_700_000_009.2 };
    await page.locator('main', { hasText: /Its own first was slot 1,236, at \d\d:\d\d:\d9: for 7.2 s no block was written/ }).waitFor();
    await page.locator('header nav a[aria-current]', { hasText: 'Cluster' }).waitFor();
  },

  async 'a budget that is used up'({ page }) {
    await page.goto(`${limited}/`);
    for (let slot = 0; !await page.locator('#notice', { hasText: 'The node answers 429' }).isVisible(); slot++) {
      await page.goto(`${limited}/#/block/${slot}`);
      await page.locator('main', { hasNotText: 'Asking the node' }).waitFor();
    }
    assert.match(await page.locator('#notice').textContent(), /until \d\d:\d\d:\d\d/);
    await page.goto(`${limited}/#/`);
    const before = await slotOf(page, 'processed');
    await page.waitForFunction((n) => Number(document.querySelector('#level-processed b').textContent.replaceAll(',', '')) > n + 3, before);
    await page.route('**/api/status', (route) => route.fulfill({ status: 429, headers: { 'Retry-After': new Date().toUTCString() }, json: {} }));
    const wait = await page.evaluate(async () => {
      const { client, link } = await import('/console/api.js');
      await client.status().catch(() => {});
      return link.refusedUntil - Date.now();
    });
    assert(wait > 50_000 && wait <= 60_000, `something between says in another way when to come again: ${wait} ms`);
    await page.goto(`${limited}/docs`);
    await page.locator('main', { hasText: /They come back in [\dm ]+ s: then load the page again/ }).waitFor();
  },

  async 'two nodes behind a balancer'({ page }) {
    await page.route('**/api/metrics', async (route) => { // which began in one second
      const response = await route.fetch();
      await route.fulfill({ response, body: (await response.text()).replace(/(process_start_time_seconds) \d+/, '$1 1') });
    });
    await page.goto(`${balanced}/`);
    const accounts = page.locator('.tile', { has: page.locator('h3', { hasText: /^accounts$/ }) }).locator('b');
    await accounts.filter({ hasText: /\d/ }).waitFor();
    const first = (await accounts.textContent()).length;
    await page.locator('#several', { hasText: 'several nodes answer here' }).waitFor();
    for (let n = 0; n < 20; n++) {
      assert.equal((await accounts.textContent()).length, first, 'the figures are of one node');
      await page.waitForTimeout(250);
    }
    const kept = await page.evaluate(async () => { // while nodes are upgraded, the one that is shown has no identifier yet
      const { Figures, parseFigures } = await import('/console/figures.js');
      const figures = new Figures();
      const [before, after] = ['process_start_time_seconds 1\nledgerd_accounts 1\n', 'process_start_time_seconds 2\nledgerd_node_info{node="0b"} 1\nledgerd_accounts 2\n'];
      return [before, after, before, after].map((text) => {
        figures.polled(parseFigures(text));
        return figures.now.get('ledgerd_accounts');
      });
    });
    assert.deepEqual(kept, [1, 1, 1, 1], 'the figures are of one node, of whichever version');
  },

  async 'a refusal that ends'({ page }) {
    let refusals = 2;
    await page.route(/\/api\/account\/[^/]+$|include=token/, (route) => (refusals-- > 0
      ? route.fulfill({ status: 429, headers: { 'Retry-After': '1' }, json: { error: 'Rate limit exceeded', details: 'wait' } }) : route.continue()));
    await page.goto(`${address}/#/account/${tokenProgram}`);
    await page.locator('main', { hasText: 'The node answers 429' }).waitFor();
    await page.locator('.facts', { hasText: 'executable' }).waitFor();
    await page.unroute(/\/api\/account\/[^/]+$|include=token/);
  },

  // A fork may undo it between the questions for it and for its block, which may be refused, too.
  async 'a transaction is followed, whatever is answered meanwhile'({ page }) {
    const { transactions: [{ signature }] } = await api('/transactions/recent?limit=1&commitment=confirmed');
    const times = [];
    const refusal = (status, details, headers = {}) => ({ status, headers, json: { error: 'Refused', details } });
    await page.route(`**/api/transaction/${signature}`, (route) => (times.push(Date.now()) === 1 ? route.fulfill(refusal(404, 'not yet')) : route.continue()));
    const others = [{ signatures: [], commitment: 'finalized' }, { commitment: 'processed' }];
    let wait = true;
    await page.route('**/api/blocks/*?include=signatures', async (route) => {
      if (wait) {
        wait = false;
        return route.fulfill(refusal(429, 'wait', { 'Retry-After': '1' }));
      }
      const response = await route.fetch();
      return route.fulfill({ response, json: { ...await response.json(), ...others.shift() } });
    });
    await page.goto(`${address}/#/tx/${signature}`);
    await page.locator('.refusal', { hasText: 'not yet' }).waitFor();
    await page.locator('.facts', { hasText: /commitment\s*not known/ }).waitFor();
    await page.locator('.facts .badge', { hasText: 'processed' }).waitFor();
    const key = page.locator('.keys a').first();
    await key.focus();
    const focused = await key.elementHandle();
    await page.locator('.facts .badge', { hasText: 'finalized' }).waitFor();
    assert(await focused.evaluate((element) => document.activeElement === element), 'the focus stays');
    assert.equal(times.length, 5, 'questions');
    assert(times[4] - times[0] > 6500, `questions as often as polls, which are two seconds apart: ${times.map((time) => time - times[0])}`);
  },

  async 'a frame that is lost is counted'({ page }) {
    await page.addInitScript(() => {
      const Real = WebSocket;
      let lost = false;
      window.WebSocket = function Lossy(url) {
        const socket = new Real(url);
        let resumed = false;
        socket.addEventListener('message', (event) => {
          if (resumed && !lost && event.data.includes('account_update')) {
            event.stopImmediatePropagation();
            lost = true;
          }
          resumed ||= url.includes('tokens=true') && event.data.includes('"resumed"');
        });
        return socket;
      };
    });
    await page.goto(`${address}/#/`);
    await page.locator('#tape-state', { hasText: 'seq' }).waitFor();
    await kill(page);
    await page.locator('#resume-result strong', { hasText: /^1 missed$/ }).waitFor();
  },
};

// Goes through the pages of the console, and has each looked at.
async function tour(page, look) {
  const { slot } = await api('/blocks/latest');
  const { transactions: [{ signature }] } = await api('/transactions/recent?limit=1');
  const { pubkey, token } = await richest();
  const accounts = [token.owner, token.mint, pubkey, tokenProgram, nobody].map((key) => `account/${key}`);
  for (const name of ['', 'blocks', 'transactions', 'socket', 'cluster', `block/${slot}`, `block/${slot + 1000}`, `tx/${signature}`, ...accounts, 'nowhere']) {
    await page.goto(`${address}/#/${name}`);
    await page.locator('main:not(:has([aria-busy], [role=status]:empty)) h1').waitFor({ state: 'attached' });
    if (['', 'blocks'].includes(name)) await page.locator('main tbody .slot').first().waitFor({ state: 'attached' });
    await look(`#/${name}`);
  }
}

// What a narrow page does not show, where slots are as long as those of mainnet and a line stands between the rows of a list.
function outOfSight() {
  for (const slot of document.querySelectorAll('main .slot')) slot.textContent = '399,999,999';
  for (const rows of document.querySelectorAll('main .tape tbody')) Object.assign(rows.insertRow().insertCell(), { colSpan: 6, textContent: 'a line' });
  const right = (element) => element.getBoundingClientRect().right;
  const named = (what) => (element) => `${element.localName} ${element.ariaLabel ?? element.textContent.slice(0, 40)} ${what}`;
  const parts = [document.scrollingElement, ...document.querySelectorAll('header a, main .scroll, main .hex, main .command code')];
  const wide = parts.filter((part) => part.scrollWidth > part.clientWidth || right(part) > innerWidth);
  const headings = (part) => [...part.querySelectorAll('th')].filter((cell) => cell.clientWidth > 0);
  const empty = parts.filter((part) => part.matches('.scroll') && headings(part).length > 0 && right(headings(part).at(-1)) < right(part) - 2);
  const short = [...document.querySelectorAll('main td:first-child .key')].filter((key) => key.clientWidth < 80); // px, of some ten letters
  return [...wide.map(named('is too wide')), ...empty.map(named('has columns of nothing')), ...short.map(named('shows too little of a name'))];
}

async function phone({ page }) {
  await page.setViewportSize({ width: 390, height: 844 });
  const look = async (at) => assert.deepEqual(await page.evaluate(outOfSight), [], at);
  await tour(page, look);
  for (const at of ['', '/start', '/streaming', '/metrics', '/api', '/search?q=slot']) {
    await page.goto(`${address}/docs${at}`);
    await look(`/docs${at}`);
  }
}

// Every page in both colour schemes, and on a phone, has nothing that axe finds wrong.
async function accessible({ page }) {
  const axe = readFileSync(here('../node_modules/axe-core/axe.min.js'), 'utf8');
  const all = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'best-practice'];
  const look = (width, colorScheme, rules) => async (at) => {
    await page.setViewportSize({ width, height: 900 });
    await page.emulateMedia({ colorScheme });
    const { violations } = await page.evaluate((runOnly) => axe.run({ runOnly }), rules);
    assert.deepEqual(violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).slice(0, 3).join(' ')}`), [], `${at} in ${colorScheme}, ${width} px`);
  };
  const looks = [look(1280, 'dark', all), look(1280, 'light', ['color-contrast', 'link-in-text-block']), look(390, 'light', all)];
  const lookAll = async (at) => { for (const one of looks) await one(at); };
  await page.goto(`${address}/docs/streaming`); // with contents, tables and code, as other pages of the manual
  await page.evaluate(axe);
  await lookAll('the manual');
  await page.getByRole('button', { name: 'copy' }).first().click();
  await page.getByRole('button', { name: /copied|marked/ }).first().waitFor();
  await page.goto(`${address}/`);
  await page.evaluate(axe);
  await tour(page, lookAll);
}

// Closes a page, of which a request may be under way that a step would answer.
async function leave({ page }) {
  await page.unrouteAll({ behavior: 'ignoreErrors' });
  await page.close();
}

rules();
const browser = await launch();
try {
  const main = await open(browser, address);
  const apart = { 'a budget that is used up': limited, 'two nodes behind a balancer': balanced, 'a block that came before the page has no time': address, 'a frame that is lost is counted': address }; // steps with pages of their own
  for (const [name, step] of Object.entries({ ...steps, accessible, phone })) {
    const began = Date.now();
    const on = apart[name] ? await open(browser, apart[name]) : main;
    try {
      await step(on);
    } catch (error) {
      const text = await on.page.locator('body').innerText().catch(() => '');
      await on.page.screenshot({ path: process.env.LEDGERD_CONSOLE_FAILURE }).catch(() => {});
      throw new Error(`${name}: ${error.message}\nThe page ${on.page.url()} says:\n${text.slice(0, 2000)}\nIt did wrong: ${on.wrongs.join('\n')}`);
    }
    assert.deepEqual(on.wrongs, [], name);
    if (on !== main) await leave(on);
    console.log(`${name}: ${Date.now() - began} ms`);
  }
  await leave(main);
} finally {
  await browser.close();
}
process.exit(0);
