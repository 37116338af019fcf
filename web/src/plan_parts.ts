// The answer of a search over serving layouts.
import type { BestIn, Facts, PlanAnswer, PlanRun, RunResult } from './api';
import { h, table } from './dom';
import { compact, dollars, milliseconds } from './format';
import { rangeNote } from './parts';
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

export function planParts(result: RunResult<PlanAnswer>, facts: Facts, model: string): HTMLElement[] {
  const { answer } = result;
  const plot = new Plot('Speed per user against throughput per device', '', true);
  if (answer.frontier.length > 0) plot.show(frontier(answer));
  return [
    verdictCard(facts, { state: answer.winner ? 'met' : 'missed', headline: planVerdict(answer), subject: `${model}: the best of ${compact(answer.layouts)} layouts`, figures: bigFigures(answer), layer: 'serving', notes: answer,
      prose: h('p', { class: 'sentence' }, answer.sentence.trim()) }),
    answer.reachable ? reachablePart(answer.reachable) : null,
    answer.commands.length > 0 ? launchPart(answer.commands) : null,
    answer.ranking.length > 0 ? table('Layouts, best first',
      [{ title: 'layout' }, { title: 'devices', number: true }, { title: 'requests/s sustained', number: true }, { title: 'USD/h', number: true },
        { title: 'tokens/s per device', number: true }, { title: 'USD per million output tokens', number: true }, { title: 'J per output token', number: true }],
      distinct(answer.ranking).slice(0, mostShown).map((point) => [point.layout, String(point.devices),
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

// The line goes through the runs that no other beats in speed and throughput; the others are best in cost or energy.
function frontier(answer: PlanAnswer): PlotContent {
  const points = answer.frontier;
  const byWork = points.filter((point) => point.best_in.includes('work'));
  const others = points.filter((point) => !point.best_in.includes('work'));
  const drawn = (some: typeof points) => some.map((point) => ({ name: `${point.key}<br>best in ${point.best_in.map((name) => bestIn[name]).join(', ')}`,
    value: [point.tokens_per_s_per_user, point.tokens_per_s_per_device] }));
  return {
    summary: `${points.length} runs that no other run of the same speed beats in throughput, cost or energy`,
    columns: [{ title: 'layout' }, { title: 'requests/s', number: true }, { title: 'tokens/s per user', number: true }, { title: 'tokens/s per device', number: true },
      { title: 'USD per million output tokens', number: true }, { title: 'J per output token', number: true }, { title: 'best in' }],
    rows: points.map((point) => [point.key, compact(point.rate), compact(point.tokens_per_s_per_user), compact(point.tokens_per_s_per_device),
      money(point.usd_per_million_output_tokens), energy(point), point.best_in.map((name) => bestIn[name]).join(', ')]),
    option: (theme) => ({
      grid: room,
      legend: { data: ['best throughput', ...(others.length > 0 ? ['best cost or energy'] : [])] },
      tooltip: { trigger: 'item', formatter: (item: { data: { name: string; value: [number, number] } }) =>
        `${item.data.name}<br>${compact(item.data.value[0])} tokens/s per user, ${compact(item.data.value[1])} per device` },
      xAxis: axis(theme, 'output tokens/s per user', { type: 'value', scale: true, ...below }),
      yAxis: axis(theme, 'output tokens/s per device', { type: 'value', min: 0 }),
      series: [{ name: 'best throughput', type: 'line', symbolSize: 8, data: drawn(byWork) },
        { name: 'best cost or energy', type: 'scatter', symbol: 'diamond', symbolSize: 11, data: drawn(others) }],
    }),
  };
}
