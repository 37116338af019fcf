// Compare: two configurations of a step side by side, and which part made the difference.
import { run, type Facts, type RunResult, type StepAnswer } from '../api';
import { fill, h, table } from '../dom';
import { bytes, compact, percent, seconds, shortName, speed, words } from '../format';
import { commandCard, exportButtons } from '../parts';
import { axis, Plot, room, type PlotContent } from '../plot';
import { StepForm } from '../step_form';
import { stepParts } from '../step_parts';
import { Task } from '../task';

export function compareTab(facts: Facts): HTMLElement {
  const output = h('div', { class: 'stack' });
  const task = new Task(output);
  const first = new StepForm(facts, 'A', { model: 'Llama-3.1-8B', device: 'h100_sxm' });
  const second = new StepForm(facts, 'B', { model: 'Llama-3.1-8B', device: 'h100_sxm', quantization: 'fp8' });
  const compare = (event: Event) => {
    event.preventDefault();
    void task.start(async (signal, say) => {
      say('Predicting both…');
      const ask = (form: StepForm) => run<StepAnswer>({ command: 'step', flags: { ...form.flags(), device: form.deviceName(), memory: true } }, signal);
      const results = await Promise.all([ask(first), ask(second)]);
      fill(output, ...comparison(results[0], results[1]));
      say('Done.');
    });
  };
  return h('section', { 'aria-labelledby': 'compare-title' },
    h('h1', { id: 'compare-title' }, 'Which is faster, and why?'),
    h('p', { class: 'lead' }, 'One step of a model, twice: change the device, the numbers, the batch, and see which operators the difference comes from.'),
    h('form', { onsubmit: compare, 'aria-label': 'Two configurations' },
      h('div', { class: 'pair' }, h('div', { class: 'card' }, first.element), h('div', { class: 'card' }, second.element)),
      h('div', { class: 'buttons' }, h('button', { type: 'submit', class: 'primary' }, 'Compare'), task.stop)),
    h('div', { class: 'stack' }, h('div', {}, task.bar, task.status), output));
}

interface Difference { name: string; a: number; b: number }

function differences(a: StepAnswer, b: StepAnswer): Difference[] {
  const of = (answer: StepAnswer) => new Map(stepParts(answer).map((part) => [part.name, part.value]));
  const [left, right] = [of(a), of(b)];
  return [...new Set([...left.keys(), ...right.keys()])].map((name) => ({ name, a: left.get(name) ?? 0, b: right.get(name) ?? 0 }))
    .sort((x, y) => Math.abs(y.b - y.a) - Math.abs(x.b - x.a));
}

function comparison(a: RunResult<StepAnswer>, b: RunResult<StepAnswer>): HTMLElement[] {
  const parts = differences(a.answer, b.answer);
  const times = new Plot('Time of each part', 'tall', true);
  const longest = [...parts].sort((x, y) => Math.max(y.a, y.b) - Math.max(x.a, x.b)).slice(0, 10);
  queueMicrotask(() => times.show(partBars(longest)));
  const rows: [string, (answer: StepAnswer) => string][] = [
    ['Model', (answer) => shortName(answer.model)], ['Devices', (answer) => `${answer.devices} × ${answer.device}`],
    ['Step', (answer) => `${seconds(answer.seconds.value)} (${seconds(answer.seconds.low)} to ${seconds(answer.seconds.high)})`],
    ['Tokens/s', (answer) => compact(answer.tokens_per_second)], ['Tokens/s for each device', (answer) => compact(answer.tokens_per_second / answer.devices)],
    ['Share of the peak', (answer) => percent(answer.mfu)],
    ['Memory of the step', (answer) => bytes(answer.stages[0]?.memory_bytes.total ?? 0) + (answer.fits_in_memory ? '' : ', does not fit')],
    ['Room in the KV cache', (answer) => answer.serving_memory ? `${compact(answer.serving_memory.tokens.value)} tokens` : '–'],
    ['Rests on', (answer) => answer.seconds.confidence ?? ''],
  ];
  return [
    h('section', { class: 'card', 'aria-live': 'polite', 'aria-label': 'Answer' }, explanation(a.answer, b.answer, parts)),
    table('Both configurations', [{ title: 'figure' }, { title: 'A', number: true }, { title: 'B', number: true }], rows.map(([name, of]) => [name, of(a.answer), of(b.answer)])),
    h('div', { class: 'plots' }, times.element),
    commandCard([a.command_line, b.command_line], exportButtons('foretoken-compare', { a: a.answer, b: b.answer },
      [['part', 'a_seconds', 'b_seconds'], ...parts.map((part) => [part.name, part.a, part.b])])),
  ];
}

function explanation(a: StepAnswer, b: StepAnswer, parts: Difference[]): HTMLElement {
  const change = b.seconds.value - a.seconds.value;
  const overlap = b.seconds.low <= a.seconds.high && a.seconds.low <= b.seconds.high;
  // Those that pull the same way as the whole, as shares of what they gain together.
  const helpers = parts.filter((part) => (part.b - part.a) * change > 0).slice(0, 3);
  const against = parts.filter((part) => (part.b - part.a) * change < 0 && Math.abs(part.b - part.a) > 0.02 * Math.abs(change)).slice(0, 2);
  const told = (part: Difference) => `${words(part.name)} (${seconds(part.a)} → ${seconds(part.b)}, ${percent(Math.abs((part.b - part.a) / change))} of the difference)`;
  if (Math.abs(change) < 0.005 * a.seconds.value) return h('p', { class: 'sentence' }, 'A and B take the same time.');
  return h('p', { class: 'sentence' }, 'B is ', h('strong', {}, speed(a.seconds.value, b.seconds.value)), ` than A: ${seconds(a.seconds.value)} → ${seconds(b.seconds.value)}. `,
    `Most of it is ${helpers.map(told).join('; ')}.`,
    against.length > 0 ? ` The other way: ${against.map(told).join('; ')}.` : '',
    overlap ? h('span', { class: 'range' }, ' The intervals of the two overlap.') : '');
}

function partBars(parts: Difference[]): PlotContent {
  return {
    summary: parts.slice(0, 3).map((part) => `${words(part.name)} ${seconds(part.a)} in A, ${seconds(part.b)} in B`).join('; '),
    columns: [{ title: 'part' }, { title: 'A', number: true }, { title: 'B', number: true }, { title: 'B - A', number: true }],
    rows: parts.map((part) => [words(part.name), seconds(part.a), seconds(part.b), `${part.b < part.a ? '−' : '+'}${seconds(Math.abs(part.b - part.a))}`]),
    option: (theme) => ({
      grid: { ...room, right: 24 }, legend: { data: ['A', 'B'] },
      tooltip: { trigger: 'axis', axisPointer: { type: 'shadow' }, valueFormatter: (value: number) => seconds(value) },
      xAxis: axis(theme, '', { type: 'value', axisLabel: { color: theme.muted, fontSize: 11, formatter: (value: number) => seconds(value) } }),
      yAxis: axis(theme, '', { type: 'category', inverse: true, data: parts.map((part) => words(part.name)) }),
      series: (['a', 'b'] as const).map((key) => ({ name: key.toUpperCase(), type: 'bar', barMaxWidth: 11, itemStyle: { borderRadius: 2 }, data: parts.map((part) => part[key]) })),
    }),
  };
}
