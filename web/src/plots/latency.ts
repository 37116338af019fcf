// Latencies of a serving run: distribution, and how they grow with the load.
import type { Estimate, ServeAnswer } from '../api';
import { compact, milliseconds } from '../format';
import { axis, below, room, type PlotContent } from '../plot';

export interface Goal { metric: 'ttft' | 'tpot'; ms: number }

const named = { ttft: 'first token', tpot: 'per output token', e2el: 'whole request' } as const;
type Metric = keyof typeof named;

export function estimate(answer: ServeAnswer, key: string): Estimate {
  const interval = answer.intervals?.[key];
  if (interval) return interval;
  const value = Number(answer[key]);
  return { value, low: value, high: value };
}

export function latencyCdf(answer: ServeAnswer, goals: Goal[], percentiles: number[]): PlotContent {
  const metrics = Object.keys(named) as Metric[];
  const at = (metric: Metric, percentile: number) => Number(answer[`p${percentile}_${metric}_ms`]);
  return {
    summary: metrics.map((metric) => `half of ${named[metric]} times below ${milliseconds(at(metric, 50))}, 99% below ${milliseconds(at(metric, 99))}`).join('; '),
    columns: [{ title: 'percentile', number: true }, ...metrics.map((metric) => ({ title: named[metric], number: true }))],
    rows: percentiles.map((percentile) => [`${percentile}%`, ...metrics.map((metric) => milliseconds(at(metric, percentile)))]),
    option: (theme) => ({
      grid: room,
      legend: { data: metrics.map((metric) => named[metric]) },
      tooltip: { trigger: 'item', formatter: (point: { seriesName: string; value: [number, number] }) => `${point.seriesName}: ${point.value[1]}% within ${milliseconds(point.value[0])}` },
      xAxis: axis(theme, 'ms', { type: 'log', ...below }),
      yAxis: axis(theme, '% of requests', { type: 'value', min: 0, max: 100 }),
      series: metrics.map((metric, i) => ({
        name: named[metric], type: 'line', symbolSize: 5, smooth: 0.15, data: percentiles.map((percentile) => [at(metric, percentile), percentile]),
        markLine: {
          symbol: 'none', silent: true, lineStyle: { color: theme.series[i], type: 'dashed' }, label: { formatter: 'goal', color: theme.muted, fontSize: 10 },
          data: goals.filter((goal) => goal.metric === metric).map((goal) => ({ xAxis: goal.ms })),
        },
      })),
    }),
  };
}

// `speed`: output tokens/s of one user, in the mean.
export interface LoadPoint { load: number; ttft: Estimate; tpot: Estimate; throughput: number; speed: number }

const keeps = (point: LoadPoint, goals: Goal[]) => goals.every((goal) => point[goal.metric].value <= goal.ms);

// The knee of `foretoken plan serve` (knee_of in search_result.h): of the loads that keep the goals, the one with the highest throughput times speed for a user.
export function knee(points: LoadPoint[], goals: Goal[] = []): LoadPoint | undefined {
  const kept = points.filter((point) => point.speed > 0 && keeps(point, goals));
  if (kept.length < 3) return undefined;
  return kept.reduce((best, point) => (point.throughput * point.speed > best.throughput * best.speed ? point : best));
}

export function latencyAgainstLoad(points: LoadPoint[], loadName: string, asked: number, percentile: number, goals: Goal[] = []): PlotContent {
  const bend = knee(points, goals);
  const isLast = bend === points.at(-1);
  const most = goals.length > 0 ? points.filter((_, i) => points.slice(0, i + 1).every((earlier) => keeps(earlier, goals))).at(-1) : undefined;
  const limit = goals.length === 0 ? '' : most ? `; goals hold up to ${most === points.at(-1) ? 'at least ' : 'about '}${compact(most.load)} ${loadName}` : '; no load tried keeps the goals';
  return {
    summary: bend ? `${isLast ? 'no knee up to' : 'the knee is near'} ${compact(bend.load)} ${loadName}${limit}` : points.length > 2 ? `too few loads keep the goals to tell a knee${limit}` : 'under way',
    note: points.length > 2 ? limit.replace(/^; (.)/, (_, first: string) => first.toUpperCase()) : undefined,
    columns: [{ title: loadName, number: true }, { title: `p${percentile} first token`, number: true }, { title: `p${percentile} per output token`, number: true }, { title: 'output tokens/s', number: true }],
    rows: points.map((point) => [compact(point.load), milliseconds(point.ttft.value), milliseconds(point.tpot.value), compact(point.throughput)]),
    option: (theme) => ({
      grid: { ...room, right: 30 },
      legend: { data: ['first token', 'per output token'] },
      tooltip: { trigger: 'axis', valueFormatter: (value: number) => milliseconds(value) },
      xAxis: axis(theme, loadName, { type: 'value', min: 0, ...below }),
      yAxis: axis(theme, `p${percentile}, ms`, { type: 'log' }),
      series: [
        { name: 'first token', type: 'line', symbolSize: 6, data: points.map((point) => [point.load, point.ttft.value]),
          markLine: { symbol: 'none', silent: true, label: { color: theme.muted, fontSize: 10 }, lineStyle: { color: theme.muted, type: 'dotted' },
            data: [{ xAxis: asked, label: { formatter: 'asked' } }, ...(bend && !isLast && bend.load !== asked ? [{ xAxis: bend.load, label: { formatter: 'knee' } }] : [])] } },
        { name: 'per output token', type: 'line', symbolSize: 6, data: points.map((point) => [point.load, point.tpot.value]),
          markLine: { symbol: 'none', silent: true, data: goals.map((goal) => ({ yAxis: goal.ms, lineStyle: { color: theme.series[goal.metric === 'ttft' ? 0 : 1], type: 'dashed' }, label: { formatter: 'goal', position: 'insideEndTop', color: theme.muted, fontSize: 10 } })) } },
      ],
    }),
  };
}
