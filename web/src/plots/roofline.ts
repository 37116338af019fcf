// Operators of a step on the roofline of a device, perhaps beside the one it was before.
import type { DeviceFile, Fact, Operator, StepAnswer } from '../api';
import { compact, seconds, words } from '../format';
import { axis, below, room, type PlotContent } from '../plot';

interface Point { name: string; intensity: number; rate: number; seconds: number; bound: string; math: string }

// One point for each name, layers together.
export function operatorPoints(operators: Operator[]): Point[] {
  const sums = new Map<string, { flops: number; bytes: number; seconds: number; bound: string; math: string }>();
  for (const { name, work, seconds: time, bound } of operators) {
    const sum = sums.get(name) ?? { flops: 0, bytes: 0, seconds: 0, bound, math: work.math };
    sum.flops += work.flops;
    sum.bytes += work.weight_bytes + work.activation_bytes + work.written_bytes;
    sum.seconds += time.value;
    sums.set(name, sum);
  }
  return [...sums].filter(([, sum]) => sum.flops > 0 && sum.bytes > 0 && sum.seconds > 0)
    .map(([name, sum]) => ({ name, intensity: sum.flops / sum.bytes, rate: sum.flops / sum.seconds / 1e12, seconds: sum.seconds, bound: sum.bound, math: sum.math }));
}

interface Roof { name: string; teraflops: number; terabytes: number }

function roofOf(device: DeviceFile, math: string, name: string): Roof {
  const peaks = device.dense_peak_tflops ?? {};
  const peak = (peaks[math] ?? peaks.bf16 ?? peaks.fp16 ?? peaks.fp32)?.value ?? 0;
  const bandwidth = (device.memory_bandwidth_gb_per_s as Fact | undefined)?.value ?? 0;
  return { name, teraflops: peak, terabytes: bandwidth / 1000 };
}

export function roofline(answer: StepAnswer, device: DeviceFile, before?: DeviceFile): PlotContent {
  const points = operatorPoints(answer.stages[0]?.operators ?? []);
  const longest = [...points].sort((a, b) => b.seconds - a.seconds);
  const math = longest[0]?.math ?? 'bf16';
  const roofs = [roofOf(device, math, `${device.name}, ${math}`)];
  if (before) roofs.push(roofOf(before, math, 'as it ships'));
  const most = Math.max(...points.map((point) => point.seconds), 1e-12);
  return {
    summary: longest.slice(0, 3).map((point) => `${words(point.name)} at ${compact(point.intensity)} FLOP per byte reaches ${compact(point.rate)} TFLOP/s`).join('; '),
    columns: [{ title: 'operator' }, { title: 'FLOP/byte', number: true }, { title: 'TFLOP/s', number: true }, { title: 'time', number: true }, { title: 'bound by' }],
    rows: longest.map((point) => [words(point.name), compact(point.intensity), compact(point.rate), seconds(point.seconds), point.bound]),
    option: (theme) => ({
      grid: room,
      legend: { data: roofs.map((roof) => roof.name) },
      tooltip: { trigger: 'item', formatter: (item: { data: { name?: string; value?: [number, number]; seconds?: number } }) =>
        item.data.name ? `${words(item.data.name)}<br>${compact(item.data.value?.[0] ?? 0)} FLOP/byte, ${compact(item.data.value?.[1] ?? 0)} TFLOP/s<br>${seconds(item.data.seconds ?? 0)}` : '' },
      xAxis: axis(theme, 'FLOP per byte', { type: 'log', min: 0.1, max: 10000, ...below }),
      yAxis: axis(theme, 'TFLOP/s', { type: 'log' }),
      series: [
        ...roofs.map((roof, i) => {
          const ridge = roof.teraflops / roof.terabytes;
          return { name: roof.name, type: 'line', symbol: 'none', silent: true, lineStyle: { width: 2, type: i === 0 ? 'solid' : 'dashed', color: i === 0 ? theme.series[0] : theme.muted },
            itemStyle: { color: i === 0 ? theme.series[0] : theme.muted },
            data: [[0.1, 0.1 * roof.terabytes], [ridge, roof.teraflops], [10000, roof.teraflops]] };
        }),
        { name: 'operators', type: 'scatter', itemStyle: { color: theme.series[1], opacity: 0.85, borderColor: theme.surface },
          data: points.map((point) => ({ name: point.name, value: [point.intensity, point.rate], seconds: point.seconds, symbolSize: 6 + 22 * Math.sqrt(point.seconds / most) })),
          label: { show: true, position: 'top', color: theme.ink, fontSize: 10, formatter: (item: { data: { name: string; seconds: number } }) => item.data.seconds > 0.05 * most ? words(item.data.name) : '' },
          labelLayout: { hideOverlap: true } },
      ],
    }),
  };
}
