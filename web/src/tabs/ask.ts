// Ask: a serving question in, one sentence out, and what stands behind it.
import { run, type Estimate, type Facts, type PlanAnswer, type RunResult, type ServeAnswer } from '../api';
import { fill, h, submits } from '../dom';
import { compact, dollars, milliseconds, percent, shortName } from '../format';
import { GoalFields } from '../goal_fields';
import { commandCard, deviceNotes, exportButtons, failureText, figures, rangeNote, withRange, type Figure } from '../parts';
import { Plot } from '../plot';
import { cdfPercentiles, estimate, latencyAgainstLoad, latencyCdf, type Goal, type LoadPoint } from '../plots/latency';
import { engineMemory, timeParts } from '../plots/shares';
import { planParts } from '../plan_parts';
import { ServingForm, type Load } from '../serving_form';
import { Task } from '../task';

const loadFactors = [0.25, 0.5, 0.75, 1, 1.25, 1.5, 2, 3];

export function askTab(facts: Facts): HTMLElement {
  const output = h('div', { class: 'stack' });
  const task = new Task(output);
  const form = new ServingForm(facts, 'ask', { model: 'Llama-3.1-8B', device: 'h100_sxm' });
  const goals = new GoalFields();

  const find = h('input', { type: 'radio', name: 'ask-mode', value: 'find' });
  const check = h('input', { type: 'radio', name: 'ask-mode', value: 'check', checked: true });
  for (const radio of [find, check]) {
    radio.addEventListener('change', () => {
      form.findLayout(find.checked);
      goals.need(find.checked);
    });
  }
  form.findLayout(false);

  const ask = () => {
    void task.start(async (signal, say) => {
      if (find.checked) {
        say('Looking at layouts…');
        const result = await run<PlanAnswer>({ command: 'plan serve', ...form.planFlags(), ...goals.slo() }, signal, say);
        fill(output, ...planParts(result));
        task.reveal();
        say('Done.');
        return;
      }
      say('Simulating…');
      const flags = { ...form.flags(), memory: true, breakdown: true, percentile_metrics: ['ttft', 'tpot', 'itl', 'e2el'], metric_percentiles: cdfPercentiles, ...goals.goodput() };
      const wanted = goals.goals();
      const at = goals.percentile();
      const result = await run<ServeAnswer>({ command: 'serve', ...flags }, signal, say);
      const curve = new Plot(`Latency against ${form.load().kind === 'rate' ? 'rate' : 'concurrent requests'}`);
      fill(output, ...answerParts(result, facts, wanted, at, curve));
      task.reveal();
      if (result.answer.completed > 0) await sweep(form, at, curve, signal, say);
      say('Done.');
    });
    task.reveal();
  };

  return h('section', { 'aria-labelledby': 'ask-title' },
    h('h1', { id: 'ask-title' }, 'Will it hold the load?'),
    h('p', { class: 'lead' }, 'Choose a model, hardware and traffic. foretoken simulates the run request by request and gives every figure a 90% interval.'),
    h('div', { class: 'split' },
      h('form', { class: 'card', novalidate: true, onsubmit: submits(ask), 'aria-label': 'Question' },
        facts.commands['plan serve'] ? h('div', { class: 'choices', role: 'radiogroup', 'aria-label': 'What to do' },
          h('label', {}, check, 'check a layout'), h('label', {}, find, 'find the best one')) : null,
        ...form.fieldsets,
        goals.element,
        h('div', { class: 'buttons' }, h('button', { type: 'submit', class: 'primary' }, 'Ask'), task.stop)),
      h('div', { class: 'stack' }, h('div', {}, task.bar, task.status), output)));
}

function answerParts(result: RunResult<ServeAnswer>, facts: Facts, goals: Goal[], percentile: number, curve: Plot): HTMLElement[] {
  const { answer } = result;
  const cdf = new Plot('Latency distribution');
  const time = new Plot('Where the time goes');
  const memory = new Plot('Memory of a device', 'flat');
  const isServed = answer.completed > 0;  // else there is nothing to draw
  const plots = [...(isServed ? [cdf.element, curve.element] : []), ...(isServed && answer.breakdown ? [time.element] : []), ...(answer.serving_memory ? [memory.element] : [])];
  const parts = [
    h('section', { class: 'card', 'aria-live': 'polite', 'aria-label': 'Answer' }, sentence(answer, facts, goals, percentile), ...deviceNotes(answer)),
    ...(isServed ? [figures(keyFigures(answer, facts))] : []),
    ...(plots.length > 0 ? [h('div', { class: 'plots' }, ...plots)] : []),
    commandCard([result.command_line], exportButtons('foretoken-serve', result.answer, [
      ['metric', 'value', 'low', 'high'], ...Object.entries(answer.intervals ?? {}).map(([name, of]) => [name, of.value, of.low, of.high])])),
  ];
  // Charts need their size, which they have once they are in the document.
  queueMicrotask(() => {
    if (isServed) cdf.show(latencyCdf(answer, goals));
    if (isServed && answer.breakdown) time.show(timeParts(answer.breakdown.operators.map((part) => ({ name: part.operator, value: part.seconds }))));
    if (answer.serving_memory) memory.show(engineMemory(answer.serving_memory));
  });
  return parts;
}

const title = (facts: Facts, device: string): string => facts.devices.find((entry) => entry.file.name === device)?.file.title ?? device;

const goalName = { ttft: 'first token', tpot: 'output tokens' } as const;

// A goal is met where the whole interval keeps it; where only the middle does, that is said.
function verdict(goals: Goal[], limits: Record<Goal['metric'], Estimate>): HTMLElement | null {
  if (goals.length === 0) return null;
  const names = (some: Goal[]) => some.map((goal) => goalName[goal.metric]).join(' and ');
  const ends = (some: Goal[], end: 'low' | 'high') => some.map((goal) => `${milliseconds(limits[goal.metric][end])} for ${goalName[goal.metric]}`).join(' and ');
  const missed = goals.filter((goal) => limits[goal.metric].value > goal.ms);
  if (missed.length > 0) {
    const open = missed.filter((goal) => limits[goal.metric].low <= goal.ms);
    return h('span', { class: 'missed' }, `Misses the goal for ${names(missed)}${open.length > 0 ? ` by the middle estimate; the 90% interval begins at ${ends(open, 'low')}, within the goal` : ''}`);
  }
  const unsure = goals.filter((goal) => limits[goal.metric].high > goal.ms);
  const met = goals.length > 1 ? 'Meets both goals' : 'Meets the goal';
  if (unsure.length > 0) return h('span', { class: 'unsure' }, `${met} by the middle estimate only: the 90% interval reaches ${ends(unsure, 'high')}`);
  return h('span', { class: 'met' }, met);
}

function sentence(answer: ServeAnswer, facts: Facts, goals: Goal[], percentile: number): HTMLElement {
  const ttft = estimate(answer, `p${percentile}_ttft_ms`);
  const tpot = estimate(answer, `p${percentile}_tpot_ms`);
  const load = answer.max_concurrency ? `${compact(answer.max_concurrency)} concurrent requests` : `${compact(answer.request_rate ?? 0)} requests/s`;
  const what = `${shortName(answer.model_id)} on ${answer.devices} × ${title(facts, answer.device)} at ${load}`;
  const failed = failureText(answer);
  if (answer.completed === 0) return h('p', { class: 'sentence' }, h('span', { class: 'missed' }, `${failed || 'No request was served'}.`), ` ${what}: no request was served.`);
  // Latencies of those that were served say nothing about those that failed.
  const said = failed ? h('span', { class: 'missed' }, failed) : verdict(goals, { ttft, tpot });
  return h('p', { class: 'sentence' }, said, said ? '. ' : '', `${what}: `,
    `${percentile === 50 ? 'half' : `${percentile}%`} of ${failed ? `the ${compact(answer.completed)} served requests` : 'requests'} get their first token within `, withRange(ttft, milliseconds),
    ' and another token every ', withRange(tpot, milliseconds), ` or faster; ${compact(answer.output_throughput)} output tokens/s in total.`);
}

function keyFigures(answer: ServeAnswer, facts: Facts): Figure[] {
  const timed = (name: string, key: string): Figure => {
    const of = estimate(answer, key);
    return { name, value: milliseconds(of.value), note: rangeNote(of, milliseconds) };
  };
  const rent = facts.devices.find((entry) => entry.file.name === answer.device)?.rent_usd_per_hour;
  const cost = rent ? rent.value * answer.devices / 3600 / answer.output_throughput * 1e6 : undefined;
  return [
    timed('First token, median', 'p50_ttft_ms'), timed('First token, p99', 'p99_ttft_ms'),
    timed('Per output token, median', 'p50_tpot_ms'), timed('Per output token, p99', 'p99_tpot_ms'),
    timed('Whole request, median', 'p50_e2el_ms'),
    { name: 'Requests served', value: `${compact(answer.request_throughput)}/s`, note: answer.request_goodput === undefined ? undefined : `${compact(answer.request_goodput)}/s within all goals` },
    { name: 'Output tokens', value: `${compact(answer.output_throughput)}/s`, note: `${compact(answer.output_throughput / answer.devices)}/s per device` },
    { name: 'KV cache, peak use', value: percent(answer.peak_kv_use), note: answer.preemptions > 0 ? `${answer.preemptions} preemptions` : 'no preemption' },
    ...(cost === undefined ? [] : [{ name: 'Cost per million output tokens', value: dollars(cost), note: `at ${dollars(rent!.value)} per device and hour` }]),
  ];
}

// The same question under other loads, lightest first, until it is plainly too much.
async function sweep(form: ServingForm, percentile: number, plot: Plot, signal: AbortSignal, say: (text: string) => void): Promise<void> {
  const asked = form.load();
  const points: LoadPoint[] = [];
  const seen = new Set<number>();
  for (const [i, factor] of loadFactors.entries()) {
    const load: Load = { kind: asked.kind, value: asked.kind === 'rate' ? asked.value * factor : Math.max(1, Math.round(asked.value * factor)) };
    if (seen.has(load.value)) continue;
    seen.add(load.value);
    say(`Other loads: ${i + 1} of ${loadFactors.length}`);
    const { answer } = await run<ServeAnswer>({ command: 'serve', ...form.flags(load), metric_percentiles: [percentile], intervals: false }, signal);
    if (answer.completed === 0) break;
    points.push({ load: load.value, ttft: estimate(answer, `p${percentile}_ttft_ms`), tpot: estimate(answer, `p${percentile}_tpot_ms`), throughput: answer.output_throughput });
    plot.show(latencyAgainstLoad(points, asked.kind === 'rate' ? 'requests/s' : 'concurrent requests', asked.value, percentile));
    const first = points[0];
    if (factor > 1 && first && points.at(-1)!.ttft.value > 100 * first.ttft.value) break;
  }
}
