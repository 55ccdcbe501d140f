// Tables that can be sorted by any column. Long ones show the first rows, and more on request.
const FIRST_ROWS = 15;
const MORE_ROWS = 500;

// Columns: {title, number: true for figures, text(row), key(row) to sort by}.
function sortableTable(target, columns, rows, sortedBy, noun) {
  let by = sortedBy;
  let descending = true;
  let shown = FIRST_ROWS;
  const table = element('table');
  const head = element('thead');
  const body = element('tbody');
  const more = element('button', 'more');
  more.type = 'button';
  const headings = columns.map((column, index) => {
    const heading = element('th', column.number ? 'number' : '');
    heading.scope = 'col';
    const button = element('button', '', column.title);
    button.type = 'button';
    button.addEventListener('click', () => {
      descending = by === index ? !descending : Boolean(column.number);
      by = index;
      show();
    });
    heading.append(button);
    return heading;
  });
  const titles = element('tr');
  titles.append(...headings);
  head.append(titles);
  table.append(head, body);

  function show() {
    const key = columns[by].key;
    const sign = descending ? -1 : 1;
    rows.sort((one, other) => {
      const [a, b] = [key(one), key(other)];
      return sign * (a < b ? -1 : a > b ? 1 : 0);
    });
    headings.forEach((heading, index) => {
      if (index === by) heading.setAttribute('aria-sort', descending ? 'descending' : 'ascending');
      else heading.removeAttribute('aria-sort');
    });
    body.replaceChildren(...rows.slice(0, shown).map((row) => {
      const line = element('tr');
      line.append(...columns.map((column) => element('td', column.number ? 'number' : '', column.text(row))));
      return line;
    }));
    const left = rows.length - Math.min(shown, rows.length);
    more.hidden = left === 0;
    more.textContent = `Show ${formatCount(Math.min(left, MORE_ROWS))} more of ${counted(rows.length, noun)}`;
  }

  more.addEventListener('click', () => {
    shown += MORE_ROWS;
    show();
  });
  const scroll = element('div', 'scroll');
  scroll.append(table);
  target.replaceChildren(scroll, more);
  show();
}

function startRecomputed() {
  if (!data.recomputed.length) {
    byId('recomputed').textContent = 'Nothing: every operation is computed once.';
    return;
  }
  const total = data.recomputed.reduce((sum, [, , cost]) => sum + cost, 0);
  sortableTable(byId('recomputed'), [
    {title: 'operation', text: ([index]) => operationName(index), key: ([index]) => operationName(index)},
    {title: 'kind', text: ([index]) => operationKind(index), key: ([index]) => operationKind(index)},
    {title: 'recomputations', number: true, text: (row) => formatCount(row[1]), key: (row) => row[1]},
    {title: 'their cost', number: true, text: (row) => formatCost(row[2]), key: (row) => row[2]},
    {title: 'share of overhead', number: true, text: (row) => (total > 0 ? formatShare(row[2] / total) : '–'), key: (row) => row[2]},
    {title: 'result', number: true, text: (row) => formatBytes(row[3]), key: (row) => row[3]},
    {title: 'dropped for', number: true, text: (row) => counted(row[4], 'computation'), key: (row) => row[4]},
  ], data.recomputed, 3, 'operation');
}

// For each value: during how many computations it is in memory, and whether it is in memory at the peak.
function staysByValue(run) {
  const found = new Map();
  const {value, first, end, count} = run.stays;
  for (let index = 0; index < count; index += 1) {
    const entry = found.get(value[index]) || {made: 0, present: 0, atPeak: false};
    entry.made += 1;
    entry.present += end[index] - first[index];
    entry.atPeak = entry.atPeak || (first[index] <= run.peakAt && run.peakAt < end[index]);
    found.set(value[index], entry);
  }
  return found;
}

function startLargest() {
  const now = staysByValue(after);
  const then = staysByValue(before);
  const none = {made: 0, present: 0, atPeak: false};
  const present = (entry, run) => formatShare(run.length ? entry.present / run.length : 0);
  const rows = [...now.keys()].map((value) => ({value, size: values.bytes[value], after: now.get(value), before: then.get(value) || none}));
  const atPeak = (row) => Number(row.after.atPeak);
  sortableTable(byId('largest'), [
    {title: 'value', text: (row) => valueName(row.value), key: (row) => valueName(row.value)},
    {title: 'made by', text: (row) => operationKind(values.maker[row.value]), key: (row) => operationKind(values.maker[row.value])},
    {title: 'size', number: true, text: (row) => formatBytes(row.size), key: (row) => row.size},
    {title: 'made', number: true, text: (row) => (row.after.made === 1 ? 'once' : `${formatCount(row.after.made)} times`), key: (row) => row.after.made},
    {title: 'in memory for', number: true, text: (row) => present(row.after, after), key: (row) => row.after.present},
    {title: 'without recomputation', number: true, text: (row) => present(row.before, before), key: (row) => row.before.present},
    {title: 'at the peak', text: (row) => (row.after.atPeak ? 'yes' : ''), key: atPeak},
  ], rows, 2, 'value');
}
