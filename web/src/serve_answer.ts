// The answer of a serving run: verdict, figures, plots.
import { run, type Estimate, type Facts, type RunResult, type ServeAnswer } from './api';
import { h } from './dom';
import { compact, dollars, milliseconds, percent, shortName } from './format';
import { failureText, figures, rangeNote, withRange, type Figure } from './parts';
import { Plot } from './plot';
import { estimate, latencyAgainstLoad, latencyCdf, type Goal, type LoadPoint } from './plots/latency';
import { engineMemory, timeParts } from './plots/shares';
import type { Load, ServingForm } from './serving_form';
import type { Say } from './task';
import { goalState, verdictCard, type BigFigure, type State } from './verdict';

const loadFactors = [0.25, 0.5, 0.75, 1, 1.25, 1.5, 2, 3];

const title = (facts: Facts, device: string): string => facts.devices.find((entry) => entry.file.name === device)?.file.title ?? device;
const goalName = { ttft: 'first token', tpot: 'output tokens' } as const;

export function subjectOf(answer: ServeAnswer, facts: Facts): string {
  const load = answer.max_concurrency ? `${compact(answer.max_concurrency)} concurrent requests` : `${compact(answer.request_rate ?? 0)} requests/s`;
  return `${shortName(answer.model_id)} on ${answer.devices} × ${title(facts, answer.device)} at ${load}`;
}

// A goal is met where the whole interval keeps it; where only the middle does, that is said. Latencies of those that were
// served say nothing about those that failed.
export function serveVerdict(answer: ServeAnswer, goals: Goal[], percentile: number): { state: State; headline: string } {
  const failed = failureText(answer);
  if (answer.completed === 0) return { state: 'missed', headline: `${failed || 'No request was served'}.` };
  if (failed) return { state: 'missed', headline: `${failed}.` };
  if (goals.length === 0) return { state: 'plain', headline: `${compact(answer.output_throughput)} output tokens/s` };
  const of = (goal: Goal): Estimate => estimate(answer, `p${percentile}_${goal.metric}_ms`);
  const names = (some: Goal[]) => some.map((goal) => goalName[goal.metric]).join(' and ');
  const ends = (some: Goal[], end: 'low' | 'high') => some.map((goal) => `${milliseconds(of(goal)[end])} for ${goalName[goal.metric]}`).join(' and ');
  const missed = goals.filter((goal) => goalState(of(goal), goal.ms) === 'missed');
  if (missed.length > 0) {
    const open = missed.filter((goal) => of(goal).low <= goal.ms);
    return { state: 'missed', headline: `Misses the goal for ${names(missed)}${open.length > 0 ? ` by the middle estimate; the 90% interval begins at ${ends(open, 'low')}, within the goal` : ''}` };
  }
  const unsure = goals.filter((goal) => goalState(of(goal), goal.ms) === 'unsure');
  const met = goals.length > 1 ? 'Meets both goals' : 'Meets the goal';
  if (unsure.length > 0) return { state: 'unsure', headline: `${met} by the middle estimate only: the 90% interval reaches ${ends(unsure, 'high')}` };
  return { state: 'met', headline: met };
}

function prose(answer: ServeAnswer, percentile: number): HTMLElement {
  const failed = answer.failed > 0;
  return h('p', { class: 'sentence' }, `${percentile === 50 ? 'Half' : `${percentile}%`} of ${failed ? `the ${compact(answer.completed)} served requests` : 'requests'} get their first token within `,
    withRange(estimate(answer, `p${percentile}_ttft_ms`), milliseconds), ' and another token every ', withRange(estimate(answer, `p${percentile}_tpot_ms`), milliseconds),
    ` or faster; ${compact(answer.output_throughput)} output tokens/s in total.`);
}

function costOf(answer: ServeAnswer, facts: Facts): { perMillion: Estimate; perHour: number; rent: number } | undefined {
  const rent = facts.devices.find((entry) => entry.file.name === answer.device)?.rent_usd_per_hour?.value;
  if (rent === undefined || answer.output_throughput <= 0) return undefined;
  const perHour = rent * answer.devices;
  const of = (rate: number) => perHour / 3600 / rate * 1e6;
  const rate = estimate(answer, 'output_throughput');
  return { perMillion: { value: of(rate.value), low: of(rate.high), high: of(rate.low) }, perHour, rent };
}

function bigFigures(answer: ServeAnswer, facts: Facts, goals: Goal[], percentile: number): BigFigure[] {
  const at = percentile === 50 ? 'median' : `p${percentile}`;
  const latency = (name: string, metric: 'ttft' | 'tpot'): BigFigure => {
    const of = estimate(answer, `p${percentile}_${metric}_ms`);
    const [value, unit] = milliseconds(of.value).split(' ', 2);
    return { name: `${name}, ${at}`, value: value!, unit, estimate: of, show: milliseconds, goal: goals.find((goal) => goal.metric === metric)?.ms };
  };
  const cost = costOf(answer, facts);
  return [
    latency('First token', 'ttft'), latency('Per output token', 'tpot'),
    { name: 'Output tokens', value: compact(answer.output_throughput), unit: '/s', estimate: answer.intervals?.output_throughput, note: `${compact(answer.output_throughput / answer.devices)}/s per device` },
    ...(cost ? [{ name: 'Per million output tokens', value: dollars(cost.perMillion.value), estimate: cost.perMillion, show: dollars, note: `${dollars(cost.perHour)}/h: ${answer.devices} × ${dollars(cost.rent)}` }] : []),
  ];
}

function furtherFigures(answer: ServeAnswer): Figure[] {
  const timed = (name: string, key: string): Figure => {
    const of = estimate(answer, key);
    return { name, value: milliseconds(of.value), note: rangeNote(of, milliseconds) };
  };
  return [
    timed('First token, median', 'p50_ttft_ms'), timed('Per output token, median', 'p50_tpot_ms'), timed('Whole request, median', 'p50_e2el_ms'),
    { name: 'Requests served', value: `${compact(answer.request_throughput)}/s`, note: answer.request_goodput === undefined ? undefined : `${compact(answer.request_goodput)}/s within all goals` },
    { name: 'KV cache, peak use', value: percent(answer.peak_kv_use), note: answer.preemptions > 0 ? `${answer.preemptions} preemptions` : 'no preemption' },
  ];
}

export function serveParts(result: RunResult<ServeAnswer>, facts: Facts, goals: Goal[], percentile: number, curve: Plot): HTMLElement[] {
  const { answer } = result;
  const cdf = new Plot('Latency distribution');
  const time = new Plot('Where the time goes');
  const memory = new Plot('Memory of a device', 'flat');
  const isServed = answer.completed > 0;  // else there is nothing to draw
  const plots = [...(isServed ? [cdf.element, curve.element] : []), ...(isServed && answer.breakdown ? [time.element] : []), ...(answer.serving_memory ? [memory.element] : [])];
  if (isServed) cdf.show(latencyCdf(answer, goals, facts.drawn.metric_percentiles));
  if (isServed && answer.breakdown) time.show(timeParts(answer.breakdown.operators.map((part) => ({ name: part.operator, value: part.seconds }))));
  if (answer.serving_memory) memory.show(engineMemory(answer.serving_memory));
  return [
    verdictCard(facts, { ...serveVerdict(answer, goals, percentile), subject: subjectOf(answer, facts), figures: isServed ? bigFigures(answer, facts, answer.failed > 0 ? [] : goals, percentile) : [],
      layer: isServed ? 'serving' : undefined, prose: isServed ? prose(answer, percentile) : h('p', { class: 'sentence' }, 'No request was served, so there is no latency to tell.'), notes: answer }),
    ...(plots.length > 0 ? [h('div', { class: 'plots' }, ...plots)] : []),
    ...(isServed ? [figures(furtherFigures(answer))] : []),
  ];
}

// The same question under other loads, lightest first, until it is plainly too much.
export async function sweep(form: ServingForm, percentile: number, goals: Goal[], plot: Plot, signal: AbortSignal, say: Say): Promise<void> {
  const asked = form.load();
  const points: LoadPoint[] = [];
  const seen = new Set<number>();
  for (const [i, factor] of loadFactors.entries()) {
    const load: Load = { kind: asked.kind, value: asked.kind === 'rate' ? asked.value * factor : Math.max(1, Math.round(asked.value * factor)) };
    if (seen.has(load.value)) continue;
    seen.add(load.value);
    say(`Other loads: ${i + 1} of ${loadFactors.length}`, i / loadFactors.length);
    const { answer } = await run<ServeAnswer>({ command: 'serve', ...form.flags(load), metric_percentiles: [percentile], intervals: false }, signal);
    if (answer.completed === 0) break;
    points.push({ load: load.value, ttft: estimate(answer, `p${percentile}_ttft_ms`), tpot: estimate(answer, `p${percentile}_tpot_ms`), throughput: answer.output_throughput,
      speed: Number(answer.mean_tpot_ms) > 0 ? 1000 / Number(answer.mean_tpot_ms) : 0 });
    plot.show(latencyAgainstLoad(points, asked.kind === 'rate' ? 'requests/s' : 'concurrent requests', asked.value, percentile, goals));
    const first = points[0];
    if (factor > 1 && first && points.at(-1)!.ttft.value > 100 * first.ttft.value) break;
  }
}
