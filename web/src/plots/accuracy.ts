// Predicted against measured, each on a logarithmic axis; the band is 10%.
import { compact } from '../format';
import { axis, below, room, type PlotContent } from '../plot';

export interface ComparedPoint { layer: string; name: string; unit: string; measured: number; predicted: number }

export function predictedAgainstMeasured(points: ComparedPoint[]): PlotContent {
  const layers = [...new Set(points.map((point) => point.layer))];
  const all = points.flatMap((point) => [point.measured, point.predicted]).filter((value) => value > 0);
  const least = Math.min(...all) / 2;
  const most = Math.max(...all) * 2;
  const within = points.filter((point) => Math.abs(point.predicted / point.measured - 1) <= 0.1).length;
  const line = (factor: number) => [[least, least * factor], [most, most * factor]];
  return {
    summary: `${within} of ${points.length} points lie within 10%`,
    columns: [{ title: 'group' }, { title: 'layer' }, { title: 'measured', number: true }, { title: 'predicted', number: true }, { title: 'off by', number: true }],
    rows: points.map((point) => [point.name, point.layer, `${compact(point.measured)} ${point.unit}`, `${compact(point.predicted)} ${point.unit}`, `${compact(100 * (point.predicted / point.measured - 1), 2)}%`]),
    option: (theme) => ({
      grid: { ...room, top: 48 },
      legend: { data: layers },
      tooltip: { trigger: 'item', formatter: (item: { data: { name?: string; value?: [number, number]; unit?: string } }) => item.data.name
        ? `${item.data.name}<br>measured ${compact(item.data.value?.[0] ?? 0)} ${item.data.unit}<br>predicted ${compact(item.data.value?.[1] ?? 0)} ${item.data.unit}` : '' },
      xAxis: axis(theme, 'measured', { type: 'log', min: least, max: most, ...below, axisLabel: { color: theme.muted, fontSize: 11, formatter: (value: number) => compact(value) } }),
      yAxis: axis(theme, 'predicted', { type: 'log', min: least, max: most, axisLabel: { color: theme.muted, fontSize: 11, formatter: (value: number) => compact(value) } }),
      series: [
        ...[0.9, 1, 1.1].map((factor) => ({ type: 'line', symbol: 'none', silent: true, data: line(factor), lineStyle: { color: theme.muted, width: 1, type: factor === 1 ? 'solid' : 'dashed' } })),
        ...layers.map((layer, i) => ({ name: layer, type: 'scatter', symbolSize: 8, itemStyle: { color: theme.series[i % theme.series.length], opacity: 0.85 },
          data: points.filter((point) => point.layer === layer).map((point) => ({ name: point.name, unit: point.unit, value: [point.measured, point.predicted] })) })),
      ],
    }),
  };
}
