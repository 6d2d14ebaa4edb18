// The frame of the console: which page a hash names, and the head that all pages share.

import { budget, client, link } from './api.js';
import { announce, entitle, h, say } from './dom.js';
import { clock, duration } from './format.js';
import { accountPage } from './account.js';
import { blockPage } from './block.js';
import { blocksPage } from './blocks.js';
import { clusterOf, clusterPage } from './cluster.js';
import { labelled } from './figures.js';
import { overview } from './overview.js';
import { begin, figures } from './pulse.js';
import { classify, enableSearch } from './search.js';
import { socketPage } from './socket.js';
import { recentPage, transactionPage } from './transactions.js';

const byId = (id) => document.getElementById(id);

const pages = { '': overview, blocks: blocksPage, transactions: recentPage, socket: socketPage, cluster: clusterPage, block: blockPage, tx: transactionPage, account: accountPage };
const named = new Set(['block', 'tx', 'account']); // pages of one thing, whose name is in the hash

let leave = new AbortController(); // aborted when the page is left

function route() {
  leave.abort();
  leave = new AbortController();
  const [, page, name] = location.hash.match(/^#?\/?([a-z]*)\/?(.*)$/) ?? [];
  const known = Object.hasOwn(pages, page) && (!named.has(page) || classify(name).href === `#/${page}/${name}`);
  const { title, element } = known ? pages[page](leave.signal, name) : { title: 'Not found', element: nowhere() };
  entitle(title);
  byId('main').replaceChildren(element);
  for (const a of document.querySelectorAll('header nav a')) {
    a.ariaCurrent = a.getAttribute('href') === `#/${page ?? ''}` ? 'page' : null;
  }
}

const nowhere = () => h('div', h('h1', 'There is no such page'), h('p', 'A slot, a signature or a public key is found by the search above. There are also the ',
  h('a', { href: '#/' }, 'overview'), ', the ', h('a', { href: '#/transactions' }, 'newest transactions'), ' and the ', h('a', { href: '/docs/' }, 'manual'), '.'));

function moved() {
  route();
  scrollTo(0, 0);
  byId('main').focus({ preventScroll: true });
}

let illness = ''; // why the node is not healthy, in its words

const sick = () => figures.now.get('ledgerd_healthy') === 0;

// Asks for the reason when the node's figures say that it is not healthy.
async function examine() {
  illness = sick() ? await client.health().then(() => '', (error) => error.details ?? '') : '';
  drawHealth();
  drawNotice();
}

function drawHealth() {
  const state = link.state === 'away' ? 'away' : sick() ? 'not healthy' : link.state === 'up' ? 'healthy' : 'connecting';
  byId('health').dataset.state = state;
  say(byId('health'), state);
}

function drawBudget() {
  const place = byId('budget');
  if (!budget.known) return;
  const free = budget.limit === 0;
  const share = free ? 100 : Math.round(100 * budget.remaining / budget.limit);
  place.replaceChildren(...(free ? ['no limits'] : [h('span', 'budget '), `${budget.remaining}/${budget.limit}`]));
  place.style.setProperty('--share', `${share}%`);
  place.title = free ? 'This node does not limit your requests.' : `Requests you may still make until ${clock(budget.reset)}. This page asks by itself every ${duration(budget.interval())}.`;
}

// One line for what is wrong with the way to the node, and nothing while all is well.
function drawNotice() {
  const notice = byId('notice');
  const refused = link.refusedUntil - Date.now();
  const text = link.state === 'away' ? 'The node cannot be reached. This page tries again, and goes on where it was.'
    : refused > 0 ? `The node answers 429: your budget of requests is used up until ${clock(link.refusedUntil)}. Streams go on, and so does this page then.`
      : !link.live ? 'No stream comes from the node: it may take no more sockets from here. Close other pages that follow it; this one tries again.'
        : illness && `The node is not healthy: ${illness}.`;
  if (text === '' && !notice.hidden) announce('The node answers again.');
  notice.hidden = text === '';
  say(notice, text);
  clearTimeout(drawNotice.timer);
  if (refused > 0) drawNotice.timer = setTimeout(drawNotice, refused + 50);
}

function switchTheme() {
  const root = document.documentElement;
  const dark = getComputedStyle(root).colorScheme === 'dark' || root.dataset.theme === undefined && matchMedia('(prefers-color-scheme: dark)').matches;
  root.dataset.theme = dark ? 'light' : 'dark';
  try {
    localStorage.setItem('theme', root.dataset.theme);
  } catch { /* no storage: the choice lasts as long as the page */ }
  document.dispatchEvent(new Event('theme'));
}

link.addEventListener('change', () => { drawHealth(); drawNotice(); });
figures.addEventListener('polled', () => {
  examine();
  link.node = labelled(figures.now, 'ledgerd_node_info')[0]?.node;
  byId('version').title = link.node ? `node ${link.node}` : '';
  say(byId('version'), labelled(figures.now, 'ledgerd_build_info')[0]?.version);
});
figures.addEventListener('change', () => {
  byId('several').hidden = !figures.several;
  byId('of-cluster').hidden = clusterOf(figures.now) === null;
});
budget.addEventListener('change', drawBudget);
byId('theme').addEventListener('click', switchTheme);
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => document.dispatchEvent(new Event('theme')));
document.querySelector('.skip').addEventListener('click', (event) => {
  event.preventDefault(); // a hash names a page here
  byId('main').focus();
});
addEventListener('hashchange', moved);
enableSearch(byId('search'));
route();
begin().then(() => figures.run());
