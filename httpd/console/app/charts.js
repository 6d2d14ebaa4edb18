// Small charts, drawn by uPlot, with a sentence for those who do not see them.

import { h } from '/console/dom.js';

/**
 * A line over the newest points of a series. Its colour is that of its element's text.
 * @param {string} what is drawn
 * @param {(n: number) => string} write writes a value
 * @param {AbortSignal} signal
 * @returns {{element: HTMLElement, draw: (series: number[]) => void}}
 */
export function chart(what, write, signal) {
  const element = h('div', { class: 'chart', role: 'img', 'aria-label': `${what}: nothing yet` });
  let plot = null;
  let last = [];
  const line = () => getComputedStyle(element).color;
  const options = (width, height) => ({
    width, height, pxAlign: 0, padding: [3, 0, 3, 0],
    legend: { show: false }, cursor: { show: false }, axes: [{ show: false }, { show: false }],
    scales: { x: { time: false, range: (_, least) => [Math.min(least, -20), -1] }, y: { range: (_, least, most) => [0, Math.max(most * 1.1, 1)] } },
    series: [{}, { stroke: line, fill: () => line().replace(/^rgb\((.*)\)$/, 'rgba($1, 0.13)'), width: 1.5, points: { show: false } }],
  });

  function draw(series) {
    last = series;
    if (series.length === 0 || element.clientWidth === 0) return;
    const data = [series.map((_, i) => i - series.length), series];
    if (plot) plot.setData(data);
    else plot = new uPlot(options(element.clientWidth, element.clientHeight), data, element);
    element.setAttribute('aria-label', `${what}: now ${write(series.at(-1))}, between ${write(Math.min(...series))} and ${write(Math.max(...series))} of late`);
  }

  const sized = new ResizeObserver(() => {
    if (plot) plot.setSize({ width: element.clientWidth, height: element.clientHeight });
    else draw(last);
  });
  sized.observe(element);
  document.addEventListener('theme', () => plot?.redraw(), { signal });
  signal.addEventListener('abort', () => {
    sized.disconnect();
    plot?.destroy();
  });
  return { element, draw };
}
