// A serving run over time.
import type { ServeAnswer, TimePoint } from '../api';
import { compact } from '../format';
import { axis, below, room, type PlotContent } from '../plot';

interface Line { name: string; of: (point: TimePoint) => number }

function overTime(answer: ServeAnswer, unit: string, lines: Line[], area: boolean): PlotContent {
  const points = answer.time_series.points;
  const isLong = (points.at(-1)?.begin_s ?? 0) > 7200;
  const time = (point: TimePoint) => isLong ? point.begin_s / 3600 : point.begin_s;
  const timeUnit = isLong ? 'hours' : 'seconds';
  const most = lines.map((line) => `${line.name} up to ${compact(Math.max(...points.map(line.of)))}`);
  return {
    summary: most.join(', '), zooms: true,
    columns: [{ title: timeUnit, number: true }, ...lines.map((line) => ({ title: line.name, number: true }))],
    rows: points.map((point) => [compact(time(point)), ...lines.map((line) => compact(line.of(point)))]),
    option: (theme) => ({
      grid: room,
      legend: { data: lines.map((line) => line.name) },
      tooltip: { trigger: 'axis', valueFormatter: (value: number) => compact(value) },
      xAxis: axis(theme, timeUnit, { type: 'value', max: isLong ? 'dataMax' : undefined, ...below, axisLabel: { color: theme.muted, fontSize: 11, hideOverlap: true, formatter: (value: number) => compact(value) } }),
      yAxis: axis(theme, unit, { type: 'value', min: 0 }),
      series: lines.map((line) => ({ name: line.name, type: 'line', symbol: 'none', step: 'end', areaStyle: area ? { opacity: 0.15 } : undefined,
        data: points.map((point) => [time(point), line.of(point)]) })),
    }),
  };
}

export const queuePlot = (answer: ServeAnswer): PlotContent => overTime(answer, 'requests',
  [{ name: 'running', of: (point) => point.running }, { name: 'waiting', of: (point) => point.waiting }], true);

export const cachePlot = (answer: ServeAnswer): PlotContent => overTime(answer, '% of blocks',
  [{ name: 'KV cache in use', of: (point) => 100 * point.kv_blocks_used / Math.max(1, answer.kv_blocks * answer.replicas) }], true);

export const tokenPlot = (answer: ServeAnswer): PlotContent => overTime(answer, 'tokens/s',
  [{ name: 'prompt tokens', of: (point) => point.prefill_tokens_per_s }, { name: 'output tokens', of: (point) => point.decode_tokens_per_s }], false);
