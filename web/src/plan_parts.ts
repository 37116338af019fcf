// The answer of a search over serving layouts.
import type { BestIn, Facts, Fields, PlanAnswer, PlanRun, RunResult } from './api';
import { h, table } from './dom';
import { compact, dollars, milliseconds } from './format';
import { rangeNote, tableCard } from './parts';
import { commandOf, plannedModelLen } from './plan_command';
import { axis, below, Plot, room, type PlotContent } from './plot';
import { verdictCard, type BigFigure } from './verdict';

const mostShown = 20;

const money = (value: number | null): string => value === null ? '–' : dollars(value);

function energy(run: PlanRun | null): string {
  const joules = run?.joules_per_output_token;
  if (!joules) return '–';
  const range = rangeNote(joules, compact);
  return compact(joules.value) + (range ? ` (${range})` : '');
}

export const planVerdict = (answer: PlanAnswer): string => answer.winner ? `Best: ${answer.winner.layout}` : 'No layout meets the goals';

function bigFigures({ winner }: PlanAnswer): BigFigure[] {
  if (!winner) return [];
  const run = winner.run;
  return [
    { name: 'Sustained within the goals', value: compact(winner.capacity_requests_per_s.value), unit: 'requests/s', estimate: winner.capacity_requests_per_s },
    ...(winner.usd_per_hour === null ? [] : [{ name: 'Price', value: dollars(winner.usd_per_hour), unit: '/h', note: `${winner.devices} × ${winner.device}` }]),
    ...(run && run.usd_per_million_output_tokens !== null ? [{ name: 'Per million output tokens', value: dollars(run.usd_per_million_output_tokens), note: `at ${compact(run.rate)} requests/s` }] : []),
    ...(run ? [{ name: 'Speed per user', value: compact(run.tokens_per_s_per_user), unit: 'tokens/s', note: `${compact(run.tokens_per_s_per_device)} tokens/s per device` }] : []),
  ];
}

// Layouts that look the same to the reader are one row: the best of them.
function distinct(ranking: PlanAnswer['ranking']): PlanAnswer['ranking'] {
  const seen = new Set<string>();
  return ranking.filter(({ layout, device }) => !seen.has(`${layout} ${device}`) && seen.add(`${layout} ${device}`));
}

export function planParts(result: RunResult<PlanAnswer>, facts: Facts, question: Fields): HTMLElement[] {
  const { answer } = result;
  const plot = new Plot('Speed per user against throughput per device', 'tall', true);
  if (answer.frontier.length > 0) plot.show(frontier(answer, question));
  const isMixed = new Set(answer.ranking.map(({ device }) => device)).size > 1;
  return [
    verdictCard(facts, { state: answer.winner ? 'met' : 'missed', headline: planVerdict(answer), subject: `${String(question.model)}: the best of ${compact(answer.layouts)} layouts`, figures: bigFigures(answer), layer: 'serving', notes: answer,
      prose: h('p', { class: 'sentence' }, answer.sentence.trim()) }),
    answer.reachable ? reachablePart(answer.reachable) : null,
    answer.commands.length > 0 ? launchPart(answer.commands) : null,
    choices(answer),
    answer.ranking.length > 0 ? table('Layouts, best first',
      [{ title: 'layout' }, ...(isMixed ? [{ title: 'device' }] : []), { title: 'devices', number: true }, { title: 'requests/s sustained', number: true }, { title: 'USD/h', number: true },
        { title: 'tokens/s per device', number: true }, { title: 'USD per million output tokens', number: true }, { title: 'J per output token', number: true }],
      distinct(answer.ranking).slice(0, mostShown).map((point) => [point.layout, ...(isMixed ? [point.device] : []), String(point.devices),
        `${compact(point.capacity_requests_per_s.value)} (${compact(point.capacity_requests_per_s.low)} to ${compact(point.capacity_requests_per_s.high)})`,
        money(point.usd_per_hour), point.run ? compact(point.run.tokens_per_s_per_device) : '–', money(point.run?.usd_per_million_output_tokens ?? null), energy(point.run)])) : null,
    answer.frontier.length > 0 ? h('div', { class: 'plots' }, plot.element) : null,
  ].filter((part): part is HTMLElement => part !== null);
}

// What the devices can do where nothing meets the goals.
function reachablePart(reachable: NonNullable<PlanAnswer['reachable']>): HTMLElement | null {
  const facts = [
    ...reachable.alone.map(({ slo, least_ms }) => `${slo}: at least ${milliseconds(least_ms)}, for one request alone`),
    reachable.most_requests_per_s === null ? '' : `at most ${compact(reachable.most_requests_per_s)} requests/s within the goals`,
    reachable.devices_for_rate === null ? '' : `about ${compact(reachable.devices_for_rate)} such devices for the requested load`,
  ].filter((text) => text !== '');
  if (facts.length === 0) return null;
  return h('section', { class: 'card', 'aria-label': 'What is possible' }, h('h2', {}, 'What is possible'), h('ul', {}, ...facts.map((text) => h('li', {}, text))));
}

function launchPart(commands: PlanAnswer['commands']): HTMLElement {
  const told = commands.map(({ count, role, line, note }) => [
    count > 1 ? `# ${count} ${role ? `${role} ` : ''}servers, each on its own devices` : role ? `# ${role}` : '', line, note ? `# ${note}` : '',
  ].filter((text) => text !== '').join('\n'));
  return h('section', { class: 'card', 'aria-label': 'To start it' }, h('h2', {}, 'To start it'),
    h('pre', { tabindex: 0, 'aria-label': 'Commands of the engine' }, told.join('\n')));
}

const bestIn: Record<BestIn, string> = { work: 'throughput per device', cost: 'cost', energy: 'energy' };

interface DrawnRun extends PlanRun { key: string; group: string }

// Every simulated run within the goals, by device and engine; the line goes through those that no other beats in speed and throughput.
function frontier(answer: PlanAnswer, question: Fields): PlotContent {
  const best = answer.frontier;
  const maxModelLen = plannedModelLen(answer.commands);
  const groupOf = (key: string) => key.replace(/^prefill:/, '').split('/').slice(0, 2).join(', ');
  const others: DrawnRun[] = answer.points.filter((point) => point.run?.attained && !best.some(({ key }) => key === point.key)).map((point) => ({ ...point.run!, key: point.key, group: groupOf(point.key) }));
  const all: DrawnRun[] = [...best.map((point) => ({ ...point, group: groupOf(point.key) })), ...others];
  const groups = [...new Set(all.map(({ group }) => group))];
  const label = (run: DrawnRun) => `${run.key} at ${compact(run.rate)} requests/s`;
  const byLabel = new Map(all.map((run) => [label(run), run]));
  const item = (run: DrawnRun) => ({ name: label(run), value: [run.tokens_per_s_per_user, run.tokens_per_s_per_device] });
  const winner = answer.winner && all.find(({ key }) => key === answer.winner!.key);
  const tpot = Number(/^tpot<([\d.]+)ms/.exec(answer.slos.find((slo) => slo.startsWith('tpot<')) ?? '')?.[1] ?? 0);
  const line = best.filter((point) => point.best_in.includes('work')).map((point) => [point.tokens_per_s_per_user, point.tokens_per_s_per_device]).sort((a, b) => a[0]! - b[0]!);
  return {
    summary: `${best.length} of ${all.length} runs are beaten by no other run of the same speed in throughput, cost or energy`,
    note: 'Click a point for its command; click a name in the legend to hide or show it.',
    columns: [{ title: 'layout' }, { title: 'requests/s', number: true }, { title: 'tokens/s per user', number: true }, { title: 'tokens/s per device', number: true },
      { title: 'USD per million output tokens', number: true }, { title: 'J per output token', number: true }, { title: 'best in' }],
    rows: best.map((point) => [point.key, compact(point.rate), compact(point.tokens_per_s_per_user), compact(point.tokens_per_s_per_device),
      money(point.usd_per_million_output_tokens), energy(point), point.best_in.map((name) => bestIn[name]).join(', ')]),
    clicked: (name) => {
      const run = byLabel.get(name);
      return run ? commandOf(run.key, run.rate, question, maxModelLen) || run.key : '';
    },
    option: (theme) => ({
      grid: { ...room, top: groups.length > 5 ? 70 : 48 },
      legend: { data: [...groups, ...(winner ? ['best'] : [])] },
      tooltip: { trigger: 'item', formatter: (point: { data: { name?: string; value: [number, number] } }) =>
        point.data.name ? `${point.data.name}<br>${compact(point.data.value[0])} tokens/s per user, ${compact(point.data.value[1])} per device` : '' },
      xAxis: axis(theme, 'output tokens/s per user', { type: 'value', min: 0, ...below }),
      yAxis: axis(theme, 'output tokens/s per device', { type: 'value', min: 0 }),
      series: [
        { name: 'frontier', type: 'line', symbol: 'none', silent: true, lineStyle: { width: 1.5, color: theme.muted }, data: line,
          markLine: tpot > 0 ? { symbol: 'none', silent: true, label: { formatter: 'goal', color: theme.muted, fontSize: 10 }, lineStyle: { color: theme.bad, type: 'dashed', width: 1 }, data: [{ xAxis: 1000 / tpot }] } : undefined },
        ...groups.map((group) => ({ name: group, type: 'scatter', symbolSize: 8, data: all.filter((run) => run.group === group).map(item) })),
        ...(winner ? [{ name: 'best', type: 'scatter', symbol: 'diamond', symbolSize: 16, itemStyle: { color: theme.bad, borderColor: theme.surface, borderWidth: 1 }, z: 5, data: [item(winner)] }] : []),
      ],
    }),
  };
}

// Which device and engine, where there was a choice.
function choices(answer: PlanAnswer): HTMLElement | null {
  const rows = answer.by_device_and_engine;
  if (rows.length < 2) return null;
  return tableCard('Best of each device and engine', [{ title: 'device' }, { title: 'engine' }, { title: 'layout' }, { title: 'requests/s sustained', number: true }, { title: 'USD per million output tokens', number: true }, { title: 'place' }],
    [...rows].sort((a, b) => (a.place ?? 1e9) - (b.place ?? 1e9)).map(({ device, engine, answer: point, place, tied_with_best: tied, reason }) => [device, engine, point?.layout ?? (reason ?? '–'), point ? compact(point.capacity_requests_per_s.value) : '–',
      money(point?.run?.usd_per_million_output_tokens ?? null), place === null ? '–' : `${place}${tied ? ', tied with the best' : ''}`]));
}
