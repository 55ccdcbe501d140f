// The data, decoded once, and helper functions for all parts of the page. All text is set as textContent.
const data = JSON.parse(document.getElementById('data').textContent);
const facts = data.facts;
const operations = data.operations;
const values = data.values;
const VIEW = 1;

const byId = (id) => document.getElementById(id);

function element(tag, className, text) {
  const made = document.createElement(tag);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  return made;
}

// Names may contain any characters: those that do not print, or that change the direction of writing, are replaced.
const UNPRINTABLE = /[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff]/g;
const clean = (text) => text.replace(UNPRINTABLE, '\ufffd');

const operationName = (index) => clean(operations.names[index]);
const operationKind = (index) => clean(operations.kinds[operations.kind[index]]);
const valueName = (index) => (values.names[index] === 0 ? operationName(values.maker[index]) : clean(values.names[index]));
const isView = (index) => (operations.flags[index] & VIEW) !== 0;

const baseBytes = data.base.reduce((sum, [, size]) => sum + size, 0);

function decodedRun(run, label) {
  const stays = run.stays;
  const count = stays.value.length;
  const first = new Int32Array(count);
  const end = new Int32Array(count);
  for (let index = 0, at = 0; index < count; index += 1) {
    at += stays.step[index];
    first[index] = at;
    end[index] = at + stays.length[index];
  }
  const length = run.computations.length;
  const start = new Float64Array(length + 1);
  const again = new Uint8Array(length);
  const seen = new Uint8Array(operations.names.length);
  for (let index = 0; index < length; index += 1) {
    const operation = run.computations[index];
    start[index + 1] = start[index] + operations.cost[operation];
    again[index] = seen[operation];
    seen[operation] = 1;
  }
  return {label, computations: run.computations, memory: run.memory, peakAt: run.peakAt, cost: run.cost, length, start, again,
    stays: {value: Int32Array.from(stays.value), first, end, count}};
}

const after = decodedRun(data.after, 'this schedule');
const before = decodedRun(data.before, 'without recomputation');

function digits(number, most = 4) {
  return String(Number(number.toPrecision(most)));
}

function formatBytes(size) {
  let amount = size;
  for (const unit of ['B', 'kB', 'MB', 'GB', 'TB']) {
    if (Math.abs(amount) < 999.5 || unit === 'TB') return unit === 'B' ? `${size} B` : `${digits(amount)} ${unit}`;
    amount /= 1000;
  }
  return '';
}

function scaled(amount, scale, unit) {
  if (amount === 0) return `0 ${unit}`;
  let [prefix, size] = scale[0];
  for (const [candidate, factor] of scale.slice(1)) {
    if (Math.abs(amount) < 0.9995 * factor) break;
    [prefix, size] = [candidate, factor];
  }
  return `${digits(amount / size)} ${prefix}${unit}`;
}

function formatCost(amount) {
  if (facts.unit === 's') return scaled(amount, [['n', 1e-9], ['µ', 1e-6], ['m', 1e-3], ['', 1]], 's');
  if (facts.unit === 'FLOP') return scaled(amount, [['', 1], ['k', 1e3], ['M', 1e6], ['G', 1e9], ['T', 1e12], ['P', 1e15]], 'FLOP');
  const number = Number(amount.toPrecision(6)).toLocaleString('en-US', {maximumFractionDigits: 6});
  return facts.unit === 'given' ? number : `${number} ${clean(facts.unit)}`;
}

const formatSeconds = (seconds) => (seconds < 120 ? `${seconds.toFixed(2)} s` : `${Math.round(seconds / 60)} min`);
const formatShare = (share) => `${(100 * share).toFixed(2)} %`;
const formatChange = (share) => `${share < 0 ? '−' : '+'}${(100 * Math.abs(share)).toFixed(2)} %`;
const formatCount = (count) => count.toLocaleString('en-US');
const counted = (count, noun) => `${formatCount(count)} ${noun}${count === 1 ? '' : 's'}`;

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

// A canvas at the resolution of the screen, in CSS pixels.
function prepared(canvas) {
  const box = canvas.getBoundingClientRect();
  const ratio = window.devicePixelRatio || 1;
  canvas.width = Math.max(1, Math.round(box.width * ratio));
  canvas.height = Math.max(1, Math.round(box.height * ratio));
  const pen = canvas.getContext('2d');
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, box.width, box.height);
  pen.font = '12px system-ui, sans-serif';
  return {pen, width: box.width, height: box.height, ratio};
}

// Round figures for an axis: about `wanted` of them up to `most`.
function ticks(least, most, wanted) {
  const span = most - least;
  if (!(span > 0)) return [least];
  const rough = span / wanted;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((factor) => factor * power).find((candidate) => candidate >= rough);
  const found = [];
  for (let tick = Math.ceil(least / step) * step; tick <= most + step * 1e-9; tick += step) found.push(tick);
  return found;
}

function legend(target, entries) {
  target.replaceChildren(...entries.map(([name, text, dashed]) => {
    const entry = element('span');
    const swatch = element('i', dashed ? 'swatch dash' : 'swatch');
    swatch.style[dashed ? 'borderColor' : 'background'] = `var(--${name})`;
    entry.append(swatch, element('span', '', text));
    return entry;
  }));
}
