// The answer of a collective over sizes.
import type { CollectiveAnswer, Facts } from './api';
import { h } from './dom';
import { bytes, compact, seconds, words } from './format';
import { axis, below, Plot, room, type PlotContent } from './plot';
import { verdictCard } from './verdict';

const size = (count: number): string => count < 1e6 ? `${compact(count / 1024)} KiB` : count < 1 << 30 ? `${compact(count / 2 ** 20)} MiB` : `${compact(count / 2 ** 30)} GiB`;
const gigabytes = (rate: number): string => `${compact(rate / 1e9)} GB/s`;

export function collectiveParts(answer: CollectiveAnswer, facts: Facts): HTMLElement[] {
  const first = answer.rows[0]!, last = answer.rows.at(-1)!;
  const time = new Plot('Time against size'), rate = new Plot('Bus bandwidth against size');
  time.show(overSize(answer, 'µs', (row) => 1e6 * row.seconds.value, (row) => [1e6 * row.seconds.low, 1e6 * row.seconds.high]));
  rate.show(overSize(answer, 'GB/s', (row) => row.bus_bandwidth_bytes_per_second / 1e9));
  const [latency, unit] = seconds(first.seconds.value).split(' ', 2), [longest, longestUnit] = seconds(last.seconds.value).split(' ', 2);
  return [
    verdictCard(facts, { state: 'plain', headline: `${gigabytes(last.bus_bandwidth_bytes_per_second)} bus bandwidth at ${size(last.bytes)}`, subject: `${words(answer.op)} of ${answer.ranks} ranks on ${words(answer.machine)}`,
      figures: [{ name: `Time of ${size(first.bytes)}`, value: latency!, unit, estimate: first.seconds, show: seconds, note: `${first.algorithm}, ${first.protocol}` },
        { name: `Time of ${size(last.bytes)}`, value: longest!, unit: longestUnit, estimate: last.seconds, show: seconds, note: `${last.algorithm}, ${last.protocol}` },
        { name: 'Bus bandwidth, largest', value: compact(last.bus_bandwidth_bytes_per_second / 1e9), unit: 'GB/s', note: `algorithm bandwidth ${gigabytes(last.algorithm_bandwidth_bytes_per_second)}` }],
      layer: 'collectives', notes: {}, prose: h('p', { class: 'sentence' }, `Based on ${last.basis}.`) }),
    h('div', { class: 'plots' }, time.element, rate.element),
  ];
}

type Row = CollectiveAnswer['rows'][number];

function overSize(answer: CollectiveAnswer, unit: string, of: (row: Row) => number, interval?: (row: Row) => [number, number]): PlotContent {
  const rows = answer.rows;
  return {
    summary: `${compact(of(rows[0]!))} ${unit} at ${size(rows[0]!.bytes)}, ${compact(of(rows.at(-1)!))} ${unit} at ${size(rows.at(-1)!.bytes)}`,
    columns: [{ title: 'size' }, { title: unit, number: true }, ...(interval ? [{ title: '90% interval', number: true }] : []), { title: 'algorithm' }],
    rows: rows.map((row) => [size(row.bytes), compact(of(row)), ...(interval ? [interval(row).map((end) => compact(end)).join(' to ')] : []), `${row.algorithm}, ${row.protocol}`]),
    option: (theme) => ({
      grid: room,
      tooltip: { trigger: 'axis', valueFormatter: (value: number) => `${compact(value)} ${unit}` },
      xAxis: axis(theme, 'message', { type: 'log', logBase: 2, ...below, axisLabel: { color: theme.muted, fontSize: 11, hideOverlap: true, formatter: (value: number) => bytes(value) } }),
      yAxis: axis(theme, unit, { type: 'log' }),
      series: [{ type: 'line', symbolSize: 5, data: rows.map((row) => [row.bytes, of(row)]) },
        ...(interval ? ([0, 1] as const).map((end) => ({ type: 'line', symbol: 'none', silent: true, lineStyle: { type: 'dashed', width: 1, color: theme.muted }, data: rows.map((row) => [row.bytes, interval(row)[end]]) })) : [])],
    }),
  };
}
