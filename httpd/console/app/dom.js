// Elements are made here and nowhere else. What a node tells becomes text, never markup.

const svgSpace = 'http://www.w3.org/2000/svg';

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, '');
    else if (value !== false && value != null) element.setAttribute(name, value);
  }
  element.append(...children.flat().filter((child) => child != null && child !== false));
  return element;
}

/**
 * Makes an HTML element. Attributes that begin with "on" are listeners; those that are false or null are left out.
 * @param {string} tag with its classes: 'span.quiet'
 * @param {Object<string, any>} [attributes]
 * @param {...(Node | string | null | false | Array<Node | string | null | false>)} children
 * @returns {HTMLElement}
 */
export function h(tag, ...children) {
  const attributes = children[0]?.constructor === Object ? children.shift() : {};
  const [name, ...classes] = tag.split('.');
  const element = document.createElement(name);
  element.classList.add(...classes);
  return fill(element, attributes, children);
}

/** Makes an SVG element likewise. */
export const s = (tag, attributes = {}, ...children) => fill(document.createElementNS(svgSpace, tag), attributes, children);

/** Sets the text of an element only if it differs, so that nothing is laid out or read out again for nothing. */
export function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** Names the page in the window and its history. */
export function entitle(title) { document.title = `${title} · ledgerd`; }

/** Tells people who listen to the page something once. */
export function announce(text) { say(document.getElementById('announcements'), text); }

/** A list of terms and what they are. Pairs whose second is null are left out. */
export function facts(...pairs) {
  return h('dl.facts', pairs.filter(([, value]) => value != null)
    .map(([term, value]) => h('div', h('dt', term), h('dd', value))));
}

/** A cell with a number. */
export const cell = (inside) => h('td.number', inside);

/** A table that scrolls sideways inside itself. Columns whose heading ends with > hold numbers; those that begin with - are left out on a phone. */
export function table(caption, headings, body) {
  const cells = headings.map((text) => h('th', { scope: 'col', class: text.endsWith('>') && 'number' }, text.replace(/^-|>$/g, '')));
  const frame = h('div.scroll', { tabindex: 0, role: 'region', 'aria-label': caption }, h('table', h('thead', h('tr', cells)), body));
  headings.forEach((text, at) => frame.classList.toggle(`without-${at + 1}`, text.startsWith('-')));
  return frame;
}

/** Draws now and every so many ms, until the page is left. */
export function every(ms, draw, signal) {
  draw();
  const timer = setInterval(draw, ms);
  signal.addEventListener('abort', () => clearInterval(timer));
}
