// The results for people.

const COLUMNS = [
  ['', (row) => row.name],
  ['events', (row) => row.events],
  ['limits', (row) => row.limits],
  ['stored', (row) => row.eventsAfterReload ?? row.eventsStored],
  ['missing', (row) => minus(row.events, row.eventsAfterReload ?? row.eventsStored)],
  ['events/s', (row) => rate(row)],
  ['seconds', (row) => fixed(row.wallMs, 1_000, 1)],
  ['first event ms', (row) => fixed(row.warmFirstMs, 1, 0)],
  ['newest 50 ms', (row) => fixed(row.warmNewest50Ms, 1, 0)],
  ['peak RSS MB', (row) => fixed(row.memory?.residentPeakBytes, 1e6, 0)],
  ['page MB', (row) => fixed(row.memory?.pageBytes, 1e6, 0)],
  ['JS heap MB', (row) => fixed(row.memory?.heapBytes, 1e6, 0)],
  ['database MB', (row) => fixed(row.databaseBytes, 1e6, 1)],
  ['gzipped kB', (row) => fixed(row.gzippedBytes, 1e3, 0)],
  ['remark', (row) => row.error],
];

/** A table in Markdown. */
export function table(results) {
  const rows = [COLUMNS.map(([heading]) => heading), ...results.map((row) => COLUMNS.map(([, cell]) => String(cell(row) ?? '–')))];
  const widths = COLUMNS.map((_, column) => Math.max(...rows.map((row) => row[column].length), 3));
  const line = (cells) => `| ${cells.map((cell, column) => cell.padEnd(widths[column])).join(' | ')} |`;
  return [line(rows[0]), line(widths.map((width) => '-'.repeat(width))), ...rows.slice(1).map(line)].join('\n');
}

/**
 * How `ours` stands to the fastest of the others, and to what checking signatures alone allows: a line for each size.
 *
 * @param {object[]} results
 * @param {{ workers: number, perSecond: number } | undefined} limit
 */
export function summary(results, ours, limit) {
  return results.filter(({ name }) => name === ours).map((row) => {
    const others = results.filter(({ name, events, limits }) => name !== ours && events === row.events && limits === row.limits);
    const fastest = others.reduce((best, other) => ((rate(other) ?? 0) > (rate(best) ?? 0) ? other : best), {});
    const words = [];
    if (limit) words.push(`${fixed(rate(row) / limit.perSecond, 1, 2)} of the signature limit`);
    if (fastest.name) words.push(`${fixed(rate(row) / rate(fastest), 1, 1)} times ${fastest.name}, the fastest of the others`);
    return `${row.events} events, ${row.limits} limits: ${words.join(', ')}`;
  }).join('\n');
}

function rate({ eventsStored, wallMs }) {
  return eventsStored === undefined ? undefined : Math.round(eventsStored / (wallMs / 1_000));
}

function fixed(value, unit, digits) {
  return value === undefined ? undefined : (value / unit).toFixed(digits);
}

function minus(all, stored) {
  return stored === undefined ? undefined : all - stored;
}
