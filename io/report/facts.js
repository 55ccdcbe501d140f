// The figures at the top, and the section on how the schedule was found.
const STOPS = {finished: 'the search finished', 'time-limit': 'the time limit was reached', interrupted: 'it was interrupted'};

function tile(label, figure, remark, good) {
  const made = element('div', 'tile');
  made.append(element('div', 'label', label), element('div', good ? 'figure good' : 'figure', figure), element('div', 'remark', remark));
  return made;
}

function gapText() {
  if (facts.gap === null) return ['not known', 'nothing is proven'];
  if (facts.boundScope === 'any') return [formatShare(facts.gap), 'at most, for any order'];
  const any = facts.anyBound === null ? '' : `; ${formatShare(gapTo(facts.anyBound))} for any order`;
  return [formatShare(facts.gap), `at most, for this order${any}`];
}

function gapTo(bound) {
  return facts.cost > 0 ? Math.max(0, facts.cost - bound) / facts.cost : 0;
}

// The limits that are proven: for any order, and for this order where that is higher.
function boundText() {
  if (facts.bound === null) return 'none';
  const model = facts.boundRuntime === null || facts.boundRuntime === facts.runtime ? '' : ', nothing computed in place';
  if (facts.boundScope === 'any') return `${formatCost(facts.bound)}: no schedule in any order of first computations costs less${model}`;
  const own = `${formatCost(facts.bound)}: no schedule in this order of first computations costs less${model}`;
  return facts.anyBound === null ? own : `${own}; in any order, none costs less than ${formatCost(facts.anyBound)}`;
}

function startFacts() {
  byId('name').textContent = clean(facts.name) || 'schedule';
  byId('verdict').textContent = `${facts.status === 'optimal' ? 'An optimal schedule' : 'A schedule'} of ${counted(facts.operations, 'operation')}, found by ${clean(facts.strategy)}`;
  const saved = facts.keepAllPeak ? facts.peak / facts.keepAllPeak - 1 : 0;
  byId('tiles').replaceChildren(
    tile('peak memory', formatBytes(facts.peak), `${formatChange(saved)} from ${formatBytes(facts.keepAllPeak)}`, true),
    tile('budget', formatBytes(facts.budget), `${formatBytes(facts.budget - facts.peak)} unused`),
    tile('cost', formatCost(facts.cost), `${formatChange(facts.overhead)} over the ideal`),
    tile('gap', ...gapText()),
    tile('recomputed', counted(facts.recomputed, 'time'), counted(data.recomputed.length, 'operation')),
  );
  const rows = [
    ['status', `${facts.status}; ${STOPS[facts.stop]} after ${formatSeconds(facts.seconds)}`],
    ['strategy', clean(facts.strategy)],
    ...Object.entries(facts.provenance).map(([key, note]) => [clean(key).replaceAll('_', ' '), clean(note)]),
    ['cost', `${formatCost(facts.cost)}; ideal cost: ${formatCost(facts.idealCost)}`],
    ['bound', boundText()],
    ['costs from', facts.unit === 'given' ? 'the graph file, without a unit' : `${clean(facts.costModel)}, in ${clean(facts.unit)}`],
    ['memory model', facts.runtime],
    ['seed', String(facts.seed)],
    ['versions', Object.entries(facts.versions).map(([name, version]) => `${clean(name)} ${clean(version)}`).join(', ')],
    ['created', clean(facts.created)],
    ['graph', facts.digest],
  ];
  byId('facts').replaceChildren(...rows.flatMap(([name, text]) => [element('dt', '', name), element('dd', '', text)]));
}
