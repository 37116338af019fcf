// A serving run over time.
import type { ServeAnswer, TimePoint } from '../api';
import { compact } from '../format';
import { axis, below, room, type PlotContent } from '../plot';

interface Line { name: string; of: (point: TimePoint) => number }

function overTime(answer: ServeAnswer, unit: string, lines: Line[], area: boolean): PlotContent {
  const points = answer.time_series.points;
  const most = lines.map((line) => `${line.name} up to ${compact(Math.max(...points.map(line.of)))}`);
  return {
    summary: most.join(', '),
    columns: [{ title: 'seconds', number: true }, ...lines.map((line) => ({ title: line.name, number: true }))],
    rows: points.map((point) => [compact(point.begin_s), ...lines.map((line) => compact(line.of(point)))]),
    option: (theme) => ({
      grid: room,
      legend: { data: lines.map((line) => line.name) },
      tooltip: { trigger: 'axis', valueFormatter: (value: number) => compact(value) },
      xAxis: axis(theme, 'seconds', { type: 'value', ...below }),
      yAxis: axis(theme, unit, { type: 'value', min: 0 }),
      series: lines.map((line) => ({ name: line.name, type: 'line', symbol: 'none', step: 'end', areaStyle: area ? { opacity: 0.15 } : undefined,
        data: points.map((point) => [point.begin_s, line.of(point)]) })),
    }),
  };
}

export const queuePlot = (answer: ServeAnswer): PlotContent => overTime(answer, 'requests',
  [{ name: 'running', of: (point) => point.running }, { name: 'waiting', of: (point) => point.waiting }], true);

export const cachePlot = (answer: ServeAnswer): PlotContent => overTime(answer, '% of blocks',
  [{ name: 'KV cache in use', of: (point) => 100 * point.kv_blocks_used / Math.max(1, answer.kv_blocks * answer.replicas) }], true);

export const tokenPlot = (answer: ServeAnswer): PlotContent => overTime(answer, 'tokens/s',
  [{ name: 'prompt tokens', of: (point) => point.prefill_tokens_per_s }, { name: 'output tokens', of: (point) => point.decode_tokens_per_s }], false);
