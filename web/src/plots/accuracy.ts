// Predicted against measured, each on a logarithmic axis; the dashed lines are 10% off.
import { compact } from '../format';
import { axis, below, room, type PlotContent } from '../plot';

export interface ComparedPoint { layer: string; name: string; unit: string; measured: number; predicted: number }

const off = (point: ComparedPoint): number => point.predicted / point.measured - 1;

export function predictedAgainstMeasured(points: ComparedPoint[]): PlotContent {
  const layers = [...new Set(points.map((point) => point.layer))];
  const units = [...new Set(points.map((point) => point.unit))];
  const all = points.flatMap((point) => [point.measured, point.predicted]);
  const least = all.reduce((a, b) => Math.min(a, b), Infinity) / 1.5;
  const most = all.reduce((a, b) => Math.max(a, b), 0) * 1.5;
  const within = points.filter((point) => Math.abs(off(point)) <= 0.1).length;
  const line = (factor: number) => [[least, least * factor], [most, most * factor]];
  const unit = units.length === 1 && units[0] ? `, ${units[0]}` : units.length > 1 ? ', in the unit of each' : '';
  const scale = { type: 'log', min: least, max: most };
  const label = (theme: { muted: string }) => ({ color: theme.muted, fontSize: 11, hideOverlap: true, showMinLabel: false, showMaxLabel: false, formatter: (value: number) => compact(value, 1) });
  return {
    summary: `${within} of ${points.length} points lie within 10%`,
    columns: [{ title: 'group' }, { title: 'layer' }, { title: 'measured', number: true }, { title: 'predicted', number: true }, { title: 'off by', number: true }],
    rows: points.map((point) => [point.name, point.layer, `${compact(point.measured)} ${point.unit}`, `${compact(point.predicted)} ${point.unit}`, `${compact(100 * off(point), 2)}%`]),
    option: (theme) => ({
      grid: { ...room, top: 48 },
      legend: layers.length > 1 ? { data: layers } : undefined,
      tooltip: { trigger: 'item', formatter: (item: { data: { name?: string; value?: [number, number]; unit?: string } }) => item.data.name
        ? `${item.data.name}<br>measured ${compact(item.data.value?.[0] ?? 0)} ${item.data.unit}<br>predicted ${compact(item.data.value?.[1] ?? 0)} ${item.data.unit}` : '' },
      xAxis: axis(theme, `measured${unit}`, { ...scale, ...below, axisLabel: label(theme) }),
      yAxis: axis(theme, `predicted${unit}`, { ...scale, axisLabel: label(theme) }),
      series: [
        ...[0.9, 1, 1.1].map((factor) => ({ type: 'line', symbol: 'none', silent: true, data: line(factor), lineStyle: { color: theme.muted, width: 1, type: factor === 1 ? 'solid' : 'dashed' } })),
        ...layers.map((layer, i) => ({ name: layer, type: 'scatter', symbolSize: points.length > 200 ? 5 : 8, itemStyle: { color: theme.series[i % theme.series.length], opacity: 0.75 },
          data: points.filter((point) => point.layer === layer).map((point) => ({ name: point.name, unit: point.unit, value: [point.measured, point.predicted] })) })),
      ],
    }),
  };
}
