// R and S as the paper draws them: a row for each stage, a column for each operation, both in the order of first computations.
const matrix = stagesOf(after);

// Views cost nothing and have neither a stage nor a column.
function stagesOf(run) {
  const column = new Int32Array(operations.names.length).fill(-1);
  const order = [];
  const starts = [0];
  const stage = new Int32Array(run.length);
  for (let index = 0; index < run.length; index += 1) {
    stage[index] = order.length;
    const operation = run.computations[index];
    if (isView(operation) || column[operation] >= 0) continue;
    column[operation] = order.length;
    order.push(operation);
    starts.push(index + 1);
  }
  const count = order.length;
  for (let index = 0; index < run.length; index += 1) stage[index] = Math.min(stage[index], Math.max(0, count - 1));
  return {column, order, starts, stage, count};
}

// The stages at whose beginning a stay is in memory, first to last; none if last is below first.
function keptStages(index) {
  const {first, end} = after.stays;
  return [matrix.stage[first[index]] + 1, matrix.stage[end[index] - 1]];
}

function cells(canvas) {
  const {pen, width, ratio} = prepared(canvas);
  const size = width / Math.max(1, matrix.count);
  return {pen, size, gap: size >= 5 ? 1 : 0, pixel: 1 / ratio, width};
}

function drawR() {
  const {pen, size, gap, pixel} = cells(byId('matrix-r'));
  const mark = (index, least) => {
    const column = matrix.column[after.computations[index]];
    if (column < 0) return;
    const side = Math.max(size - gap, least);
    pen.fillRect(column * size, matrix.stage[index] * size, side, side);
  };
  pen.fillStyle = colour('first');
  for (let index = 0; index < after.length; index += 1) if (!after.again[index]) mark(index, pixel);
  pen.fillStyle = colour('again');
  for (let index = 0; index < after.length; index += 1) if (after.again[index]) mark(index, 2 * pixel);
}

function drawS() {
  const {pen, size, gap, pixel} = cells(byId('matrix-s'));
  const width = Math.max(size - gap, pixel);
  pen.fillStyle = colour('kept');
  pen.globalAlpha = size < pixel ? 0.35 : 1; // where a pixel is many columns, the more of them are kept the darker it is
  for (let index = 0; index < after.stays.count; index += 1) {
    const column = matrix.column[values.maker[after.stays.value[index]]];
    const [first, last] = keptStages(index);
    if (column >= 0 && first <= last) pen.fillRect(column * size, first * size, width, (last - first + 1) * size - gap);
  }
}

// The cell under the pointer; if a pixel covers many cells, the most important one.
function cellAt(canvas, event) {
  const box = canvas.getBoundingClientRect();
  const size = box.width / Math.max(1, matrix.count);
  const within = (position) => Math.max(0, Math.min(matrix.count - 1, Math.floor(position)));
  const reach = size < 4 ? 2 : 0;
  const x = event.clientX - box.left;
  const y = event.clientY - box.top;
  return {
    row: within(y / size), column: within(x / size),
    rows: [within((y - reach) / size), within((y + reach) / size)], columns: [within((x - reach) / size), within((x + reach) / size)],
  };
}

const stageText = (row) => `stage ${formatCount(row + 1)} (up to the first ${operationName(matrix.order[row])})`;

function describeR({row, column, rows, columns}) {
  for (let index = matrix.starts[rows[0]]; index < after.length && matrix.stage[index] <= rows[1]; index += 1) {
    const found = matrix.column[after.computations[index]];
    if (after.again[index] && found >= columns[0] && found <= columns[1]) {
      return `${stageText(matrix.stage[index])} computes ${operationName(after.computations[index])} again`;
    }
  }
  if (column === row) return `stage ${formatCount(row + 1)} computes ${operationName(matrix.order[row])} for the first time`;
  return column > row
    ? `${operationName(matrix.order[column])} is first computed in stage ${formatCount(column + 1)}`
    : `${stageText(row)} does not compute ${operationName(matrix.order[column])}`;
}

function describeS({row, column, columns}) {
  const name = operationName(matrix.order[column]);
  let nearby = null;
  for (let index = 0; index < after.stays.count; index += 1) {
    const found = matrix.column[values.maker[after.stays.value[index]]];
    if (found < columns[0] || found > columns[1]) continue;
    const [first, last] = keptStages(index);
    if (row < first || row > last) continue;
    const value = after.stays.value[index];
    const text = `${valueName(value)}, ${formatBytes(values.bytes[value])}, is kept from stage ${formatCount(first + 1)} to ${formatCount(last + 1)}`;
    if (found === column) return text;
    nearby = text;
  }
  return nearby || `${name} is not in memory when ${stageText(row)} begins`;
}

function drawMatrices() {
  drawR();
  drawS();
}

function startMatrices() {
  legend(byId('matrix-legend'), [['first', 'computed for the first time'], ['again', 'recomputed'], ['kept', 'kept in memory']]);
  const readout = byId('matrix-readout');
  readout.textContent = `${counted(matrix.count, 'stage')}, as many as operations, views not counted. Point at a matrix to see details.`;
  for (const [id, describe] of [['matrix-r', describeR], ['matrix-s', describeS]]) {
    const canvas = byId(id);
    for (const kind of ['pointermove', 'pointerdown']) {
      canvas.addEventListener(kind, (event) => {
        if (matrix.count) readout.textContent = describe(cellAt(canvas, event));
      });
    }
  }
  drawMatrices();
}
