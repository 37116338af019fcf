// Where time and memory go: bars of parts.
import type { ServingMemory } from '../api';
import { bytes, percent, seconds, words } from '../format';
import { axis, room, type PlotContent } from '../plot';

export interface Part { name: string; value: number }

// The largest, and the rest together.
function largest(parts: Part[], most: number): Part[] {
  const sorted = parts.filter((part) => part.value > 0).sort((a, b) => b.value - a.value);
  if (sorted.length <= most) return sorted;
  const rest = sorted.slice(most - 1).reduce((sum, part) => sum + part.value, 0);
  return [...sorted.slice(0, most - 1), { name: 'all others', value: rest }];
}

export function timeParts(parts: Part[], show: (value: number) => string = seconds, quantity = 'time'): PlotContent {
  const shown = largest(parts, 10);
  const total = shown.reduce((sum, part) => sum + part.value, 0);
  return {
    summary: shown.slice(0, 3).map((part) => `${words(part.name)} ${percent(part.value / total)}`).join(', '),
    columns: [{ title: 'part' }, { title: quantity, number: true }, { title: 'share', number: true }],
    rows: shown.map((part) => [words(part.name), show(part.value), percent(part.value / total)]),
    option: (theme) => ({
      grid: { ...room, top: 8, bottom: 8, right: 56 },
      tooltip: { trigger: 'item', valueFormatter: (value: number) => show(value) },
      xAxis: axis(theme, '', { type: 'value', axisLabel: { show: false }, splitLine: { show: false } }),
      yAxis: axis(theme, '', { type: 'category', inverse: true, data: shown.map((part) => words(part.name)), axisTick: { show: false }, axisLine: { show: false } }),
      series: [{ type: 'bar', barMaxWidth: 18, itemStyle: { borderRadius: 3 }, data: shown.map((part) => part.value),
        label: { show: true, position: 'right', color: theme.muted, fontSize: 11, formatter: (bar: { value: number }) => percent(bar.value / total) } }],
    }),
  };
}

// The parts that lie below `capacity`, and what goes beyond it.
function cutAt(parts: Part[], capacity: number): { inside: Part[]; over: number } {
  let left = capacity;
  const inside = parts.map((part) => {
    const value = Math.min(part.value, Math.max(0, left));
    left -= part.value;
    return { ...part, value };
  });
  return { inside, over: Math.max(0, -left) };
}

// One bar, of parts that fill the device's memory. `missing`: bytes that an engine lacks although its parts fit.
export function memoryBar(parts: Part[], capacity: number, missing = 0): PlotContent {
  const shown = parts.filter((part) => part.value > 0);
  const used = shown.reduce((sum, part) => sum + part.value, 0);
  const { inside, over } = cutAt(shown, capacity);
  const lacking = Math.max(over, missing);
  // A bar of what is needed would hide the memory there is: beyond it, half as much again is drawn at most.
  const most = lacking > 0 ? 1.5 * capacity : capacity;
  const beyond = Math.min(lacking, 0.45 * capacity);
  const warning = over > 0 ? `Does not fit: ${bytes(used)} needed, ${bytes(capacity)} available.`
    : missing > 0 ? `Does not fit: ${bytes(missing)} short.` : undefined;
  return {
    summary: `${warning ? `${warning} ` : ''}${bytes(used)} of ${bytes(capacity)}: ${shown.map((part) => `${words(part.name)} ${bytes(part.value)}`).join(', ')}`,
    warning,
    columns: [{ title: 'part' }, { title: 'size', number: true }, { title: 'of the memory', number: true }],
    rows: [...shown.map((part) => [words(part.name), bytes(part.value), percent(part.value / capacity)]),
      ...(lacking > 0 ? [['does not fit', bytes(lacking), percent(lacking / capacity)]] : [])],
    option: (theme) => ({
      grid: { left: 4, right: 24, top: 58, bottom: 24 },
      legend: { data: shown.map((part) => words(part.name)) },
      tooltip: { trigger: 'item', formatter: (item: { seriesIndex: number }) => item.seriesIndex < shown.length
        ? `${words(shown[item.seriesIndex]!.name)}: ${bytes(shown[item.seriesIndex]!.value)}` : `does not fit: ${bytes(lacking)}` },
      xAxis: axis(theme, '', { type: 'value', min: 0, max: most,
        axisLabel: { color: theme.muted, fontSize: 11, formatter: (value: number) => value <= capacity ? `${Math.round(value / 1e9)} GB` : '' } }),
      yAxis: { type: 'category', data: [''], show: false },
      series: [
        ...inside.map((part, i) => ({
          name: words(part.name), type: 'bar', stack: 'memory', barWidth: 34, data: [part.value], itemStyle: { borderColor: theme.surface, borderWidth: 1 },
          markLine: i === 0 ? { symbol: 'none', silent: true, label: { formatter: 'memory', color: theme.muted, fontSize: 10 }, lineStyle: { color: theme.bad, type: 'solid', width: 2 }, data: [{ xAxis: capacity }] } : undefined,
        })),
        ...(lacking > 0 ? [{ name: 'does not fit', type: 'bar', stack: 'memory', barWidth: 34, data: [beyond],
          itemStyle: { color: theme.bad }, label: { show: beyond > 0.2 * capacity, position: 'inside', color: theme.surface, fontSize: 11, formatter: 'does not fit' } }] : []),
      ],
    }),
  };
}

const engineParts = ['weights', 'peak_activations', 'runtime', 'graphs', 'context', 'kv_cache', 'unused'];

export function engineMemory(memory: ServingMemory): PlotContent {
  return memoryBar(engineParts.map((name) => ({ name, value: memory.bytes[name]?.value ?? 0 })), memory.bytes.allocatable?.value ?? 0,
    memory.starts ? 0 : memory.short_by_bytes);
}
