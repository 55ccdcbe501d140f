// The search over time: the cost of the best schedule, and the proven bound.
const known = (column) => data.progress.filter((moment) => moment[column] !== null).map((moment) => moment[column]);
let progressPlot = null;

// Costs from the lowest bound to the most expensive schedule, but at most half above the best: the first schedules may cost many times more.
function progressScale() {
  const [costs, bounds] = [known(1), known(2)];
  const best = Math.min(...costs);
  const low = Math.min(best, ...bounds);
  const highest = Math.max(...costs, ...bounds);
  return {low, high: best > 0 ? Math.min(highest, 1.5 * best) : highest, highest};
}

function drawProgress() {
  if (known(1).length < 2) return;
  const {pen, width, height} = prepared(byId('progress-picture'));
  const inner = {width: width - MARGIN.left - MARGIN.right, height: height - MARGIN.top - MARGIN.bottom};
  const {low, high} = progressScale();
  const room = (high - low || Math.abs(high) || 1) * 0.08;
  const end = Math.max(...data.progress.map(([seconds]) => seconds), 0.001);
  const x = (seconds) => MARGIN.left + inner.width * seconds / end;
  const y = (cost) => MARGIN.top + inner.height * (1 - (cost - low + room) / (high - low + 2 * room));
  progressPlot = {inner, end};
  pen.textAlign = 'right';
  pen.textBaseline = 'middle';
  for (const tick of ticks(low - room, high + room, 4)) {
    pen.fillStyle = colour('grid');
    pen.fillRect(MARGIN.left, Math.round(y(tick)), inner.width, 1);
    pen.fillStyle = colour('soft');
    pen.fillText(formatCost(tick), MARGIN.left - 8, y(tick));
  }
  pen.textBaseline = 'bottom';
  pen.textAlign = 'left';
  pen.fillText('0 s', MARGIN.left, height - 2);
  pen.textAlign = 'right';
  pen.fillText(formatSeconds(end), MARGIN.left + inner.width, height - 2);
  pen.save();
  pen.beginPath();
  pen.rect(MARGIN.left - 2, MARGIN.top, inner.width + 4, inner.height);
  pen.clip();
  for (const [column, name] of [[2, 'kept'], [1, 'after']]) {
    pen.strokeStyle = colour(name);
    pen.lineWidth = 1.75;
    pen.beginPath();
    let last = null;
    for (const moment of data.progress) {
      if (moment[column] === null) continue;
      if (last !== null) pen.lineTo(x(moment[0]), y(last));
      pen.lineTo(x(moment[0]), y(moment[column]));
      last = moment[column];
    }
    if (last !== null) pen.lineTo(x(end), y(last));
    pen.stroke();
  }
  pen.restore();
}

function momentText([seconds, cost, bound, phase]) {
  const parts = [`${formatSeconds(seconds)}: ${clean(phase)}`];
  if (cost !== null) parts.push(`best ${formatCost(cost)}`);
  if (bound !== null) parts.push(`bound ${formatCost(bound)}`);
  if (cost > 0 && bound !== null) parts.push(`gap ${formatShare(Math.max(0, cost - bound) / cost)}`);
  return parts.join(' · ');
}

function startProgress() {
  const readout = byId('progress-readout');
  if (!data.progress.length) {
    byId('progress-chart').hidden = true;
    readout.textContent = 'The schedule file has no record of the search.';
    return;
  }
  if (known(1).length < 2) {
    byId('progress-chart').hidden = true;
    readout.textContent = momentText(data.progress[data.progress.length - 1]);
    return;
  }
  const {high, highest} = progressScale();
  const first = highest > high ? ` (the first, ${formatCost(known(1)[0])}, is above the scale)` : '';
  legend(byId('progress-legend'), [['after', `best schedule so far${first}`], ['kept', 'proven bound for the order being searched']]);
  readout.textContent = momentText(data.progress[data.progress.length - 1]);
  for (const kind of ['pointermove', 'pointerdown']) {
    byId('progress-chart').addEventListener(kind, (event) => {
      const left = byId('progress-picture').getBoundingClientRect().left + MARGIN.left;
      const seconds = progressPlot.end * (event.clientX - left) / progressPlot.inner.width;
      const past = data.progress.filter((moment) => moment[0] <= seconds);
      readout.textContent = momentText(past[past.length - 1] || data.progress[0]);
    });
  }
  drawProgress();
}
