// Ask: a serving question in, one sentence out, and what stands behind it.
import { run, type Facts, type PlanAnswer, type RunResult, type ServeAnswer } from '../api';
import { fill, h, submits } from '../dom';
import { compact, dollars, milliseconds, percent, shortName } from '../format';
import { GoalFields } from '../goal_fields';
import { commandCard, exportButtons, figures, rangeNote, withRange, type Figure } from '../parts';
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

  const ask = () => void task.start(async (signal, say) => {
    if (find.checked) {
      say('Looking at layouts…');
      const result = await run<PlanAnswer>({ command: 'plan serve', flags: { ...form.planFlags(), ...goals.slo() } }, signal, say);
      fill(output, ...planParts(result));
      say('Done.');
      return;
    }
    say('Simulating…');
    const flags = { ...form.flags(), memory: true, breakdown: true, 'percentile-metrics': ['ttft', 'tpot', 'itl', 'e2el'], 'metric-percentiles': cdfPercentiles, ...goals.goodput() };
    const wanted = goals.goals();
    const at = goals.percentile();
    const result = await run<ServeAnswer>({ command: 'serve', flags }, signal, say);
    const curve = new Plot(`Latency against ${form.load().kind === 'rate' ? 'rate' : 'requests at a time'}`);
    fill(output, ...answerParts(result, facts, wanted, at, curve));
    await sweep(form, at, curve, signal, say);
    say('Done.');
  });

  return h('section', { 'aria-labelledby': 'ask-title' },
    h('h1', { id: 'ask-title' }, 'Will it hold the load?'),
    h('p', { class: 'lead' }, 'Say what you serve, on what, and how much of it: a simulated run answers, request by request, with an interval on every figure.'),
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
  const parts = [
    h('section', { class: 'card', 'aria-live': 'polite', 'aria-label': 'Answer' }, sentence(answer, facts, goals, percentile)),
    figures(keyFigures(answer, facts)),
    h('div', { class: 'plots' }, cdf.element, curve.element, answer.breakdown ? time.element : null, answer.serving_memory ? memory.element : null),
    commandCard([result.command_line], exportButtons('foretoken-serve', result.answer, [
      ['metric', 'value', 'low', 'high'], ...Object.entries(answer.intervals ?? {}).map(([name, of]) => [name, of.value, of.low, of.high])])),
  ];
  // Charts need their size, which they have once they are in the document.
  queueMicrotask(() => {
    cdf.show(latencyCdf(answer, goals));
    if (answer.breakdown) time.show(timeParts(answer.breakdown.operators.map((part) => ({ name: part.operator, value: part.seconds }))));
    if (answer.serving_memory) memory.show(engineMemory(answer.serving_memory));
  });
  return parts;
}

const title = (facts: Facts, device: string): string => facts.devices.find((entry) => entry.file.name === device)?.file.title ?? device;

function sentence(answer: ServeAnswer, facts: Facts, goals: Goal[], percentile: number): HTMLElement {
  const ttft = estimate(answer, `p${percentile}_ttft_ms`);
  const tpot = estimate(answer, `p${percentile}_tpot_ms`);
  const load = answer.max_concurrency ? `${compact(answer.max_concurrency)} requests at a time` : `${compact(answer.request_rate ?? 0)} requests/s`;
  const limits = { ttft, tpot };
  const missed = goals.filter((goal) => limits[goal.metric].value > goal.ms);
  const unsure = goals.filter((goal) => limits[goal.metric].low <= goal.ms && limits[goal.metric].high > goal.ms);
  const names = (some: Goal[]) => some.map((goal) => goal.metric === 'ttft' ? 'first token' : 'output tokens').join(' and ');
  const verdict = goals.length === 0 ? null
    : missed.length > 0 ? h('span', { class: 'missed' }, `Misses the goal for ${names(missed)}`)
    : h('span', { class: 'met' }, goals.length > 1 ? 'Meets both goals' : 'Meets the goal');
  return h('p', { class: 'sentence' }, verdict, verdict ? (unsure.length > 0 ? ', though the interval leaves it open. ' : '. ') : '',
    `${shortName(answer.model_id)} on ${answer.devices} × ${title(facts, answer.device)} at ${load}: `,
    `${percentile === 50 ? 'half' : `${percentile}%`} of requests see their first token within `, withRange(ttft, milliseconds),
    ' and one more every ', withRange(tpot, milliseconds), `; ${compact(answer.output_throughput)} output tokens/s in all`,
    answer.failed > 0 ? h('span', { class: 'missed' }, `; ${answer.failed} of ${answer.num_prompts} requests failed`) : null, '.');
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
    { name: 'Output tokens', value: `${compact(answer.output_throughput)}/s`, note: `${compact(answer.output_throughput / answer.devices)}/s for each device` },
    { name: 'KV cache, most used', value: percent(answer.peak_kv_use), note: answer.preemptions > 0 ? `${answer.preemptions} preemptions` : 'no preemption' },
    ...(cost === undefined ? [] : [{ name: 'A million output tokens', value: dollars(cost), note: `${dollars(rent!.value)} per device and hour` }]),
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
    const { answer } = await run<ServeAnswer>({ command: 'serve', flags: { ...form.flags(load), 'metric-percentiles': [percentile], intervals: false } }, signal);
    points.push({ load: load.value, ttft: estimate(answer, `p${percentile}_ttft_ms`), tpot: estimate(answer, `p${percentile}_tpot_ms`), throughput: answer.output_throughput });
    plot.show(latencyAgainstLoad(points, asked.kind === 'rate' ? 'requests/s' : 'requests at a time', asked.value, percentile));
    const first = points[0];
    if (factor > 1 && first && points.at(-1)!.ttft.value > 100 * first.ttft.value) break;
  }
}
