// Small charts, drawn by uPlot, with a sentence for those who do not see them.

import { h } from './dom.js';
import { clock } from './format.js';

/** How far back charts go, in ms: one choice for all of them. */
export const range = Object.assign(new EventTarget(), { ms: 5 * 60_000 });

/** The buttons that choose it. */
export function ranges() {
  const choices = [['5 min', 5 * 60_000], ['1 h', 60 * 60_000]].map(([text, ms]) => h('button.small', { type: 'button', 'aria-pressed': String(ms === range.ms), onclick() {
    range.ms = ms;
    for (const one of choices) one.ariaPressed = one === this;
    range.dispatchEvent(new Event('change'));
  } }, text));
  return h('div.row', { role: 'group', 'aria-label': 'Range of the charts' }, choices);
}

/**
 * A line over the points of a series that are in the range. Its colour is that of its element's text.
 * @param {string} what is drawn
 * @param {(n: number) => string} write writes a value
 * @param {(text: string) => void} aimed is told the point that the pointer is at, '' for none
 * @param {AbortSignal} signal
 * @returns {{element: HTMLElement, draw: (series: [number, number][]) => void}} points are times in ms since 1970, and values
 */
export function chart(what, write, aimed, signal) {
  const element = h('div.chart', { role: 'img', 'aria-label': `${what}: nothing yet` });
  let plot = null;
  let last = [];
  const style = (name) => getComputedStyle(element)[name]; // the element has the colours of all parts, as a canvas knows no variables
  const line = () => style('color');
  const axis = (more) => ({ stroke: () => style('outlineColor'), font: '10px system-ui, sans-serif', ticks: { show: false }, ...more });
  const widest = (_, labels) => 10 + 6 * Math.max(0, ...(labels ?? []).map(({ length }) => length));
  const options = (width, height) => ({
    width, height, legend: { show: false }, padding: [6, 16, 0, 0], // half a label of the time is right of the newest
    cursor: { y: false, drag: { x: false, y: false }, points: { size: 6 } },
    axes: [axis({ size: 20, gap: 8, space: 64, grid: { show: false }, values: (_, at) => at.map((ms) => clock(ms).slice(0, 5)), incrs: [60_000, 300_000, 600_000, 1_200_000] }),
      axis({ size: widest, gap: 4, space: 24, grid: { stroke: () => style('borderTopColor'), width: 1 }, values: (_, at) => at.map(write) })],
    scales: { x: { time: false, range: (_, first, newest) => [first, Math.max(newest, first + 1000)] }, y: { range: (_, least, most) => [0, Math.max(most * 1.1, 1)] } },
    series: [{}, { stroke: line, fill: () => line().replace(/^rgb\((.*)\)$/, 'rgba($1, 0.13)'), width: 1.5, points: { show: false } }],
    hooks: { setCursor: [({ cursor: { idx }, data }) => aimed(idx == null ? '' : `${write(data[1][idx])} at ${clock(data[0][idx])}`)] },
  });

  function draw(series) {
    last = series;
    const shown = series.filter(([at]) => at >= Date.now() - range.ms);
    if (shown.length === 0 || element.clientWidth === 0) return;
    const data = [shown.map(([at]) => at), shown.map(([, value]) => value)];
    if (plot) plot.setData(data);
    else plot = new uPlot(options(element.clientWidth, element.clientHeight), data, element);
    element.ariaLabel = `${what}: now ${write(data[1].at(-1))}, between ${write(Math.min(...data[1]))} and ${write(Math.max(...data[1]))} of late`;
  }

  const sized = new ResizeObserver(() => {
    if (plot) plot.setSize({ width: element.clientWidth, height: element.clientHeight });
    else draw(last);
  });
  sized.observe(element);
  range.addEventListener('change', () => draw(last), { signal });
  document.addEventListener('theme', () => plot?.redraw(), { signal });
  signal.addEventListener('abort', () => {
    sized.disconnect();
    plot?.destroy();
  });
  return { element, draw };
}
