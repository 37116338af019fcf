// Operators of a step on the roofline of a device, perhaps beside the one it was before.
import type { DeviceFile, Fact, Operator, StepAnswer } from '../api';
import { compact, percent, seconds, words } from '../format';
import { axis, below, room, type PlotContent } from '../plot';

interface Point { name: string; intensity: number; rate: number; seconds: number; bound: string; math: string }

// One point for each name and number format, layers together. Operators of the network compute nothing and have none.
export type RoofOperator = Pick<Operator, 'name' | 'work' | 'seconds' | 'bound' | 'multiplies_in'>;

export function operatorPoints(operators: RoofOperator[]): Point[] {
  const sums = new Map<string, { name: string; flops: number; bytes: number; seconds: number; bound: string; math: string }>();
  for (const { name, work, seconds: time, bound, multiplies_in: used } of operators) {
    if (!work) continue;
    const math = used ?? work.math;
    const sum = sums.get(`${name} ${math}`) ?? { name, flops: 0, bytes: 0, seconds: 0, bound, math };
    sum.flops += work.flops;
    sum.bytes += work.weight_bytes + work.activation_bytes + work.written_bytes;
    sum.seconds += time.value;
    sums.set(`${name} ${math}`, sum);
  }
  return [...sums.values()].filter((sum) => sum.flops > 0 && sum.bytes > 0 && sum.seconds > 0)
    .map((sum) => ({ name: sum.name, intensity: sum.flops / sum.bytes, rate: sum.flops / sum.seconds / 1e12, seconds: sum.seconds, bound: sum.bound, math: sum.math }));
}

interface Roof { name: string; math: string; teraflops: number; terabytes: number; isBefore: boolean }

function roofOf(device: DeviceFile, math: string, name: string, isBefore = false): Roof {
  const peaks = device.dense_peak_tflops ?? {};
  const peak = (peaks[math] ?? peaks.bf16 ?? peaks.fp16 ?? peaks.fp32)?.value ?? 0;
  const bandwidth = (device.memory_bandwidth_gb_per_s as Fact | undefined)?.value ?? 0;
  return { name, math, teraflops: peak, terabytes: bandwidth / 1000, isBefore };
}

const mostReached = (roof: Roof, intensity: number): number => Math.min(roof.teraflops, intensity * roof.terabytes);

// A roof for each number format that operators multiply in: each is compared with its own.
export function roofline(answer: StepAnswer, device: DeviceFile, before?: DeviceFile): PlotContent {
  return operatorRoofline(answer.stages[0]?.operators ?? [], device, before);
}

export function operatorRoofline(operators: RoofOperator[], device: DeviceFile, before?: DeviceFile): PlotContent {
  const points = operatorPoints(operators);
  const longest = [...points].sort((a, b) => b.seconds - a.seconds);
  const formats = [...new Set(longest.map((point) => point.math))];
  if (formats.length === 0) formats.push('bf16');
  const own = new Map(formats.map((math) => [math, roofOf(device, math, `${device.name}, ${math}`)]));
  const roofs = [...own.values(), ...(before ? formats.map((math) => roofOf(before, math, `as it ships, ${math}`, true)) : [])];
  const shareOf = (point: Point): string => percent(point.rate / mostReached(own.get(point.math)!, point.intensity));
  const most = Math.max(...points.map((point) => point.seconds), 1e-12);
  const place = (math: string): number => formats.indexOf(math);
  return {
    summary: longest.slice(0, 3).map((point) => `${words(point.name)} at ${compact(point.intensity)} FLOP per byte reaches ${compact(point.rate)} TFLOP/s, ${shareOf(point)} of the ${point.math} roof`).join('; '),
    columns: [{ title: 'operator' }, { title: 'format' }, { title: 'FLOP/byte', number: true }, { title: 'TFLOP/s', number: true }, { title: 'of its roof', number: true }, { title: 'time', number: true }, { title: 'bound by' }],
    rows: longest.map((point) => [words(point.name), point.math, compact(point.intensity), compact(point.rate), shareOf(point), seconds(point.seconds), point.bound]),
    option: (theme) => ({
      grid: room,
      legend: { data: roofs.map((roof) => roof.name) },
      tooltip: { trigger: 'item', formatter: (item: { data: { name?: string; text?: string } }) => item.data.name ? `${words(item.data.name)}<br>${item.data.text}` : '' },
      xAxis: axis(theme, 'FLOP per byte', { type: 'log', min: 0.1, max: 10000, ...below }),
      yAxis: axis(theme, 'TFLOP/s', { type: 'log' }),
      series: [
        ...roofs.map((roof) => {
          const ridge = roof.teraflops / roof.terabytes;
          const color = roof.isBefore ? theme.muted : theme.series[place(roof.math) % theme.series.length];
          return { name: roof.name, type: 'line', symbol: 'none', silent: true, lineStyle: { width: 2, type: roof.isBefore ? 'dashed' : 'solid', color },
            itemStyle: { color }, data: [[0.1, 0.1 * roof.terabytes], [ridge, roof.teraflops], [10000, roof.teraflops]] };
        }),
        ...formats.map((math) => ({ name: `operators, ${math}`, type: 'scatter', itemStyle: { color: theme.series[place(math) % theme.series.length], opacity: 0.85, borderColor: theme.surface },
          data: points.filter((point) => point.math === math).map((point) => ({ name: point.name, value: [point.intensity, point.rate], seconds: point.seconds,
            text: `${compact(point.intensity)} FLOP/byte, ${compact(point.rate)} TFLOP/s, ${shareOf(point)} of the ${math} roof<br>${seconds(point.seconds)}`,
            symbolSize: 6 + 22 * Math.sqrt(point.seconds / most) })),
          label: { show: true, position: 'top', color: theme.ink, fontSize: 10, formatter: (item: { data: { name: string; seconds: number } }) => item.data.seconds > 0.05 * most ? words(item.data.name) : '' },
          labelLayout: { hideOverlap: true } })),
      ],
    }),
  };
}
