// Memory over time: without recomputation, with this schedule, the budget, and the values in memory at the cursor.
const MARGIN = {left: 66, right: 10, top: 10, bottom: 22};
const SHOWN_VALUES = 8;

const memoryView = {byTime: after.start[after.length] > 0, at: after.peakAt, atBefore: before.peakAt, x: null};
const highest = Math.max(facts.peak, facts.keepAllPeak, 1);
const budgetInPicture = facts.budget <= 1.5 * highest;
const memoryTop = 1.06 * (budgetInPicture ? Math.max(highest, facts.budget) : highest);

const begins = (run, index) => (memoryView.byTime ? run.start[index] : index);
const axisEnd = () => Math.max(begins(after, after.length), begins(before, before.length)) || 1;

// For each column of pixels, the computation with the most memory, so that no peak is lost; -1 after the end.
function columnsOf(run, width) {
  const scale = width / axisEnd();
  const columns = new Int32Array(Math.max(1, Math.ceil(width))).fill(-1);
  for (let index = 0; index < run.length; index += 1) {
    const from = Math.min(columns.length - 1, Math.floor(begins(run, index) * scale));
    const to = Math.min(columns.length - 1, Math.max(from, Math.ceil(begins(run, index + 1) * scale) - 1));
    for (let column = from; column <= to; column += 1) {
      if (columns[column] < 0 || run.memory[index] > run.memory[columns[column]]) columns[column] = index;
    }
  }
  return columns;
}

let memoryPlot = null;

function drawMemory() {
  const {pen, width, height} = prepared(byId('memory-picture'));
  const inner = {width: Math.max(1, width - MARGIN.left - MARGIN.right), height: height - MARGIN.top - MARGIN.bottom};
  const y = (bytes) => MARGIN.top + inner.height * (1 - bytes / memoryTop);
  memoryPlot = {inner, y, after: columnsOf(after, inner.width), before: columnsOf(before, inner.width)};
  pen.textAlign = 'right';
  pen.textBaseline = 'middle';
  for (const tick of ticks(0, memoryTop, 5)) {
    pen.fillStyle = colour('grid');
    pen.fillRect(MARGIN.left, Math.round(y(tick)), inner.width, 1);
    pen.fillStyle = colour('soft');
    pen.fillText(formatBytes(Math.round(tick)), MARGIN.left - 8, y(tick));
  }
  drawArea(pen, before, memoryPlot.before, 'before');
  drawArea(pen, after, memoryPlot.after, 'after');
  pen.fillStyle = colour('fixed');
  pen.fillRect(MARGIN.left, y(baseBytes), inner.width, y(0) - y(baseBytes));
  if (budgetInPicture) {
    pen.strokeStyle = colour('budget');
    pen.lineWidth = 1.5;
    pen.setLineDash([6, 4]);
    pen.beginPath();
    pen.moveTo(MARGIN.left, y(facts.budget));
    pen.lineTo(MARGIN.left + inner.width, y(facts.budget));
    pen.stroke();
    pen.setLineDash([]);
  }
  pen.fillStyle = colour('soft');
  pen.textBaseline = 'bottom';
  pen.textAlign = 'left';
  pen.fillText('0', MARGIN.left, height - 2);
  pen.textAlign = 'right';
  pen.fillText(memoryView.byTime ? formatCost(axisEnd()) : counted(axisEnd(), 'computation'), MARGIN.left + inner.width, height - 2);
  drawCursor();
}

function drawArea(pen, run, columns, name) {
  const {y} = memoryPlot;
  pen.beginPath();
  let last = -1;
  for (let column = 0; column < columns.length && columns[column] >= 0; column += 1) {
    const height = y(run.memory[columns[column]]);
    pen.lineTo(MARGIN.left + column, height);
    pen.lineTo(MARGIN.left + column + 1, height);
    last = column;
  }
  if (last < 0) return;
  pen.strokeStyle = colour(name);
  pen.lineWidth = name === 'after' ? 1.75 : 1.25;
  pen.stroke();
  pen.lineTo(MARGIN.left + last + 1, y(0));
  pen.lineTo(MARGIN.left, y(0));
  pen.closePath();
  pen.fillStyle = colour(`${name}-fill`);
  pen.fill();
}

function drawCursor() {
  const {pen} = prepared(byId('memory-cursor'));
  const {inner, y} = memoryPlot;
  const scale = inner.width / axisEnd();
  const centre = (run, index) => MARGIN.left + scale * (begins(run, index) + begins(run, index + 1)) / 2;
  const x = memoryView.x === null ? centre(after, memoryView.at) : memoryView.x;
  pen.fillStyle = colour('soft');
  pen.fillRect(Math.round(x), MARGIN.top, 1, inner.height);
  for (const [run, index, name] of [[before, memoryView.atBefore, 'before'], [after, memoryView.at, 'after']]) {
    if (index < 0) continue;
    pen.fillStyle = colour(name);
    pen.beginPath();
    pen.arc(Math.round(x) + 0.5, y(run.memory[index]), 4, 0, 2 * Math.PI);
    pen.fill();
    pen.strokeStyle = colour('card');
    pen.lineWidth = 1.5;
    pen.stroke();
  }
}

// The largest values in memory while a computation runs, and their total number.
function aliveAt(run, now) {
  const {value, first, end, count} = run.stays;
  const largest = [];
  let number = 0;
  let total = 0;
  for (let index = 0; index < count && first[index] <= now; index += 1) {
    if (end[index] <= now) continue;
    const size = values.bytes[value[index]];
    number += 1;
    total += size;
    if (largest.length === SHOWN_VALUES && size <= values.bytes[largest[SHOWN_VALUES - 1]]) continue;
    let place = largest.length;
    while (place > 0 && values.bytes[largest[place - 1]] < size) place -= 1;
    largest.splice(place, 0, value[index]);
    if (largest.length > SHOWN_VALUES) largest.pop();
  }
  return {largest, number, total};
}

function showMoment(target, run, now, title) {
  const parts = [element('h3', '', title)];
  if (now < 0) {
    target.replaceChildren(...parts, element('p', 'now', `finished, at a total cost of ${formatCost(run.cost)}`), element('ol'));
    return;
  }
  const operation = run.computations[now];
  const running = element('p', 'now');
  running.append(
    element('span', 'total', formatBytes(run.memory[now])),
    document.createTextNode(now === run.peakAt ? ' at the peak, while ' : ' while '),
    element('b', '', operationName(operation)),
    document.createTextNode(` (${operationKind(operation)}) is ${run.again[now] ? 'recomputed' : 'computed'}; ${formatCount(now + 1)} of ${formatCount(run.length)}`),
  );
  parts.push(running);
  const {largest, number, total} = aliveAt(run, now);
  const list = element('ol');
  const row = (who, size, plain) => {
    const item = element('li', plain ? 'plain' : '');
    const name = element('span', 'who', who);
    name.title = who;
    item.append(name, element('span', 'size', formatBytes(size)));
    list.append(item);
  };
  for (const value of largest) row(valueName(value), values.bytes[value]);
  const others = total - largest.reduce((sum, value) => sum + values.bytes[value], 0);
  if (number > largest.length) row(`${counted(number - largest.length, 'more value')}`, others, true);
  if (operations.workspace[operation]) row('workspace of the operation', operations.workspace[operation], true);
  for (const [kind, size] of data.base) row(`${clean(kind)}, fixed`, size, true);
  parts.push(list);
  target.replaceChildren(...parts);
}

function showMoments() {
  showMoment(byId('moment-after'), after, memoryView.at, 'With this schedule');
  showMoment(byId('moment-before'), before, memoryView.atBefore, 'Without recomputation, at the same point');
}

function moveTo(clientX) {
  const box = byId('memory-picture').getBoundingClientRect();
  const column = Math.max(0, Math.min(memoryPlot.after.length - 1, Math.floor(clientX - box.left - MARGIN.left)));
  Object.assign(memoryView, {at: memoryPlot.after[column], atBefore: memoryPlot.before[column], x: MARGIN.left + column + 0.5});
  drawCursor();
  showMoments();
}

// By keyboard: one computation at a time, with the run without recomputation at the same point of the axis.
function stepTo(index) {
  memoryView.at = Math.max(0, Math.min(after.length - 1, index));
  const point = begins(after, memoryView.at);
  let low = 0;
  let high = before.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (begins(before, middle + 1) <= point) low = middle + 1;
    else high = middle;
  }
  memoryView.atBefore = low < before.length ? low : -1;
  memoryView.x = null;
  drawCursor();
  showMoments();
}

function chooseAxis(byTime) {
  memoryView.byTime = byTime;
  byId('by-time').setAttribute('aria-pressed', String(byTime));
  byId('by-step').setAttribute('aria-pressed', String(!byTime));
  drawMemory();
  stepTo(memoryView.at < 0 ? after.peakAt : memoryView.at);
}

function startMemory() {
  legend(byId('memory-legend'), [
    ['after', 'this schedule'],
    ['before', 'without recomputation'],
    ['budget', `budget ${formatBytes(facts.budget)}${budgetInPicture ? '' : ' (above the picture)'}`, true],
    ...(baseBytes ? [['fixed', `fixed memory ${formatBytes(baseBytes)}`]] : []),
  ]);
  const chart = byId('memory-chart');
  for (const kind of ['pointermove', 'pointerdown']) chart.addEventListener(kind, (event) => moveTo(event.clientX));
  chart.addEventListener('keydown', (event) => {
    const leap = event.shiftKey ? Math.max(1, Math.round(after.length / 50)) : 1;
    const at = memoryView.at < 0 ? after.length - 1 : memoryView.at;
    const target = {ArrowLeft: at - leap, ArrowRight: at + leap, Home: after.peakAt}[event.key];
    if (target === undefined) return;
    event.preventDefault();
    stepTo(target);
  });
  byId('by-time').addEventListener('click', () => chooseAxis(true));
  byId('by-step').addEventListener('click', () => chooseAxis(false));
  chooseAxis(memoryView.byTime);
}
