// Compare: two questions of one kind side by side, and which parts made the difference.
import { run, type CompareAnswer, type ComparedNumber, type Facts, type Question, type RunResult } from '../api';
import { fill, h, submits, table } from '../dom';
import { choiceField } from '../fields';
import { compact, dollars, milliseconds, percent, seconds, speed, words } from '../format';
import { GoalFields } from '../goal_fields';
import { commandCard, deviceNotes, exportButtons } from '../parts';
import { axis, Plot, room, type PlotContent } from '../plot';
import { ServingForm } from '../serving_form';
import { StepForm } from '../step_form';
import { Task } from '../task';
import { go, hashOf, typedOf } from '../state';
import { TrainForm } from '../train_form';
import type { Tab } from './tab';

interface Side { elements: HTMLElement[]; question: () => Question; put: (question: Question) => void }
type MakeSide = (facts: Facts, name: string, isSecond: boolean) => Side;

const usual = { model: 'Llama-3.1-8B', device: 'h100_sxm' };

// What can be compared. The second side begins with one thing different, so that there is something to see.
const kinds: { id: string; title: string; side: MakeSide }[] = [
  { id: 'step', title: 'one step of a model', side: (facts, _name, isSecond) => {
    const form = new StepForm(facts, 'Step', { ...usual, quantization: isSecond ? 'fp8' : '' });
    return { elements: [form.element], question: () => ({ command: 'step', ...form.flags(), device: form.deviceName(), memory: true }), put: (question) => form.put(typedOf(question)) };
  } },
  { id: 'serve', title: 'a serving run', side: (facts, name, isSecond) => {
    const form = new ServingForm(facts, `compare-serve-${name}`, { ...usual, quantization: isSecond ? 'fp8' : '' });
    const goals = new GoalFields();
    form.findLayout(false);
    return { elements: [...form.fieldsets, goals.element], question: () => ({ command: 'serve', ...form.flags(), ...goals.goodput() }),
      put: (question) => { form.put(typedOf(question)); goals.load(typedOf(question)('goodput'), ''); } };
  } },
  { id: 'plan', title: 'a search for a layout', side: (facts, name, isSecond) => {
    const form = new ServingForm(facts, `compare-plan-${name}`, { ...usual, device: isSecond ? 'a100_sxm' : usual.device });
    const goals = new GoalFields();
    form.findLayout(true);
    goals.need(true);
    return { elements: [...form.fieldsets, goals.element], question: () => ({ command: 'plan serve', ...form.planFlags(), ...goals.slo() }),
      put: (question) => { form.put(typedOf(question)); goals.load(typedOf(question)('slo'), ''); } };
  } },
  { id: 'train', title: 'a training job', side: (facts, _name, isSecond) => {
    const form = new TrainForm(facts, { precision: isSecond ? 'fp8-delayed' : 'bf16' });
    return { elements: [form.element], question: () => form.question(), put: (question) => form.put(typedOf(question)) };
  } },
];

export function compareTab(facts: Facts): Tab {
  const output = h('div', { class: 'stack' });
  const task = new Task(output);
  const kind = choiceField('Compare', kinds.map(({ id, title }): [string, string] => [id, title]), 'step');
  const pair = h('div', { class: 'pair' });
  const made = new Map<string, [Side, Side]>();  // kept: what was typed stays while one looks at another kind
  const sides = (): [Side, Side] => {
    const chosen = kinds.find(({ id }) => id === kind.control.value)!;
    const known = made.get(chosen.id) ?? [chosen.side(facts, 'A', false), chosen.side(facts, 'B', true)] as [Side, Side];
    made.set(chosen.id, known);
    return known;
  };
  const show = () => {
    task.cancel();
    fill(output);
    fill(pair, ...sides().map((side, i) => h('div', { class: 'card stack', role: 'group', 'aria-label': 'AB'[i] }, h('h2', {}, 'AB'[i]!), ...side.elements)));
  };
  kind.control.addEventListener('change', show);
  show();
  const compare = () => void task.start(async (signal, say) => {
    say('Computing both…');
    const [first, second] = sides();
    const result = await run<CompareAnswer>({ command: 'compare', first: first.question(), second: second.question() }, signal, say);
    fill(output, ...comparison(result));
    task.reveal();
    say('Done.');
  });
  const submit = () => {
    const [first, second] = sides();
    task.expect('Computing both…');
    go(hashOf('compare', new URLSearchParams({ kind: kind.control.value, first: JSON.stringify(first.question()), second: JSON.stringify(second.question()) })));
  };
  const restore = (params: URLSearchParams) => {
    const asked = params.get('kind') ?? '';
    if (!kinds.some(({ id }) => id === asked)) return;
    if (kind.control.value !== asked) {
      kind.control.value = asked;
      show();
    }
    const read = (name: string): Question | undefined => {
      try {
        return JSON.parse(params.get(name) ?? '') as Question;
      } catch {
        return undefined;  // a broken address: what stands in the form is asked
      }
    };
    const [first, second] = [read('first'), read('second')];
    if (first && second) sides().forEach((side, i) => side.put([first, second][i]!));
    compare();
  };
  return { restore, element: h('section', { 'aria-labelledby': 'compare-title' },
    h('h1', { id: 'compare-title' }, 'Which is better, and why?'),
    h('p', { class: 'lead' }, 'Ask the same question twice. Change the device, the number formats, the load or the layout, and see where the difference comes from.'),
    h('form', { novalidate: true, onsubmit: submits(submit), 'aria-label': 'Two questions' },
      h('div', { class: 'card narrow' }, kind.element), pair,
      h('div', { class: 'buttons' }, h('button', { type: 'submit', class: 'primary' }, 'Compare'))),
    h('div', { class: 'stack' }, task.element, output)) };
}

function figure(value: number, unit: string): string {
  if (unit === 's') return seconds(value);
  if (unit === 'ms') return milliseconds(value);
  if (unit === 'USD') return dollars(value);
  if (unit === 'USD/h') return `${dollars(value)}/h`;
  return unit.startsWith('/') ? `${compact(value)}${unit}` : `${compact(value)} ${unit}`.trim();
}

function shown(number: ComparedNumber, side: 'first' | 'second'): string {
  const of = (value: number) => number.name.endsWith('utilisation') ? percent(value) : figure(value, number.unit);
  const interval = number[`${side}_interval`];
  return of(number[side]) + (interval && interval.high > interval.low ? ` (${of(interval.low)} to ${of(interval.high)})` : '');
}

const change = (number: ComparedNumber): string => number.first === 0 ? '–' : `${number.second < number.first ? '−' : '+'}${compact(Math.abs(100 * (number.second / number.first - 1)), 2)}%`;

function comparison(result: RunResult<CompareAnswer>): HTMLElement[] {
  const { answer } = result;
  const times = new Plot(`Parts of the ${answer.parts_of}`, 'tall', true);
  const longest = [...answer.parts].sort((x, y) => Math.max(y.first, y.second) - Math.max(x.first, x.second)).slice(0, 10);
  if (longest.length > 0) times.show(partBars(longest));
  const rows = [
    ...answer.settings.map((setting) => [setting.name, setting.first, setting.second, '']),
    ...answer.outcomes.map((outcome) => [outcome.name, outcome.first, outcome.second, '']),
    ...answer.headlines.map((number) => [number.name, shown(number, 'first'), shown(number, 'second'), change(number)])];
  return [
    h('section', { class: 'card', 'aria-live': 'polite', 'aria-label': 'Answer' }, explanation(answer), ...deviceNotes(answer)),
    table('Differences between the questions, then both answers', [{ title: 'figure' }, { title: 'A', number: true }, { title: 'B', number: true }, { title: 'change', number: true }], rows),
    ...(longest.length > 0 ? [h('div', { class: 'plots' }, times.element)] : []),
    commandCard([result.command_line], exportButtons('foretoken-compare', answer,
      [['name', 'unit', 'first', 'second'], ...[...answer.headlines, ...answer.parts].map((number) => [number.name, number.unit, number.first, number.second])])),
  ];
}

function verdict(head: ComparedNumber): (Node | string)[] {
  const both = `${shown({ ...head, first_interval: undefined }, 'first')} → ${shown({ ...head, second_interval: undefined }, 'second')}. `;
  if (Math.abs(head.second / head.first - 1) < 0.005) return [`A and B are the same in ${head.name}: ${both}`];
  if (head.unit === 's') return ['B is ', h('strong', {}, speed(head.first, head.second)), ` than A: ${both}`];
  const size = `${compact(Math.abs(100 * (head.second / head.first - 1)), 2)}% ${head.second < head.first ? 'less' : 'more'}`;
  return [`For ${head.name} B takes `, h('strong', {}, size), ` than A: ${both}`];
}

// Which of the two cannot run, and why: before any figure.
function failures(answer: CompareAnswer): string[] {
  const fits = answer.outcomes.find((outcome) => outcome.name === 'fits in memory');
  return (['first', 'second'] as const).flatMap((side, i) => {
    const why = answer.failures?.[side] ?? (fits?.[side] === 'no' ? 'Out of memory: it does not fit on the device.' : '');
    return why ? [`${'AB'[i]} does not run. ${why}`] : [];
  });
}

function explanation(answer: CompareAnswer): HTMLElement {
  const head = answer.headlines[0];
  const differing = answer.outcomes.filter((outcome) => outcome.first !== outcome.second)
    .map((outcome) => `${outcome.name[0]!.toUpperCase()}${outcome.name.slice(1)}: ${outcome.first} → ${outcome.second}. `);
  const failed = failures(answer);
  if (!head) return h('p', { class: 'sentence' }, failed.length > 0 ? h('span', { class: 'missed' }, failed.join(' ')) : 'Only one of the two has an answer, or neither.', ' ', ...differing);
  const all = answer.parts_difference_seconds;
  const off = (part: ComparedNumber) => part.second - part.first;
  // A share says nothing where parts that cancel each other are larger than what is left.
  const share = (part: ComparedNumber) => Math.abs(off(part)) <= Math.abs(all) ? `, ${percent(Math.abs(off(part) / all))} of the difference` : '';
  const told = (part: ComparedNumber) => `${words(part.name)} (${seconds(part.first)} → ${seconds(part.second)}${share(part)})`;
  // Those that pull the same way as the whole, and those that pull against it.
  const helpers = answer.parts.filter((part) => off(part) * all > 0).slice(0, 3);
  const against = answer.parts.filter((part) => off(part) * all < 0 && Math.abs(off(part)) > 0.02 * Math.abs(all)).slice(0, 2);
  const [a, b] = [head.first_interval, head.second_interval];
  const overlap = a && b && head.first !== head.second && a.low <= b.high && b.low <= a.high;
  return h('p', { class: 'sentence' },
    failed.length > 0 ? h('span', { class: 'missed' }, failed.join(' ')) : '', failed.length > 0 ? ' With enough memory: ' : '', ...verdict(head),
    helpers.length > 0 ? `${head.unit === 's' ? 'Most of it is' : `Of the ${answer.parts_of}, most of the difference is`} ${helpers.map(told).join('; ')}. ` : '',
    against.length > 0 ? `The other way: ${against.map(told).join('; ')}. ` : '', ...differing,
    overlap ? h('span', { class: 'range' }, 'The 90% intervals of A and B overlap.') : '');
}

function partBars(parts: ComparedNumber[]): PlotContent {
  return {
    summary: parts.slice(0, 3).map((part) => `${words(part.name)} ${seconds(part.first)} in A, ${seconds(part.second)} in B`).join('; '),
    columns: [{ title: 'part' }, { title: 'A', number: true }, { title: 'B', number: true }, { title: 'B - A', number: true }],
    rows: parts.map((part) => [words(part.name), seconds(part.first), seconds(part.second), `${part.second < part.first ? '−' : '+'}${seconds(Math.abs(part.second - part.first))}`]),
    option: (theme) => ({
      grid: { ...room, right: 24 }, legend: { data: ['A', 'B'] },
      tooltip: { trigger: 'axis', axisPointer: { type: 'shadow' }, valueFormatter: (value: number) => seconds(value) },
      xAxis: axis(theme, '', { type: 'value', axisLabel: { color: theme.muted, fontSize: 11, formatter: (value: number) => seconds(value) } }),
      yAxis: axis(theme, '', { type: 'category', inverse: true, data: parts.map((part) => words(part.name)) }),
      series: (['first', 'second'] as const).map((key, i) => ({ name: 'AB'[i], type: 'bar', barMaxWidth: 11, itemStyle: { borderRadius: 2 }, data: parts.map((part) => part[key]) })),
    }),
  };
}
