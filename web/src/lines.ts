// Lines over a quantity, with their 90% interval where there is one.
import type { Estimate } from './api';
import { compact } from './format';
import { axis, below, room, type PlotContent } from './plot';

export interface LinePoint { x: number; estimate: Estimate }

export function estimateLine(points: LinePoint[], xName: string, yName: string, show: (value: number) => string, scale = 1): PlotContent {
  const first = points[0], last = points.at(-1);
  return {
    summary: first && last ? `${show(first.estimate.value)} at ${compact(first.x)}, ${show(last.estimate.value)} at ${compact(last.x)}` : 'no points',
    columns: [{ title: xName, number: true }, { title: yName, number: true }, { title: '90% interval', number: true }],
    rows: points.map(({ x, estimate }) => [compact(x), show(estimate.value), `${show(estimate.low)} to ${show(estimate.high)}`]),
    option: (theme) => ({
      grid: room,
      tooltip: { trigger: 'axis', valueFormatter: (value: number) => show(value / scale) },
      xAxis: axis(theme, xName, { type: 'log', logBase: 2, ...below, axisLabel: { color: theme.muted, fontSize: 11, hideOverlap: true, formatter: (value: number) => compact(value) } }),
      yAxis: axis(theme, yName, { type: 'log' }),
      series: [{ type: 'line', symbolSize: 6, data: points.map(({ x, estimate }) => [x, scale * estimate.value]) },
        ...(['low', 'high'] as const).map((end) => ({ type: 'line', symbol: 'none', silent: true, lineStyle: { type: 'dashed', width: 1, color: theme.muted },
          data: points.map(({ x, estimate }) => [x, scale * estimate[end]]) }))],
    }),
  };
}
