// The answers of a training job, and of a search for its plan.
import type { Facts, RunResult, TrainAnswer, TrainingPlan, TrainPlanAnswer } from './api';
import { h, table } from './dom';
import { bytes, compact, dollars, milliseconds, percent, seconds, shortName, words } from './format';
import { commandCard } from './parts';
import { axis, below, Plot, room, type PlotContent } from './plot';
import { memoryBar, timeParts } from './plots/shares';
import { verdictCard, type BigFigure } from './verdict';

const partNames: Record<string, string> = { linear: 'matrix multiplies', passes: 'norms and other passes', tensor: 'tensor-parallel traffic', data: 'gradient traffic', sharded: 'gathering sharded weights',
  bubble: 'pipeline bubble', expert: 'expert traffic', context: 'context traffic', host: 'host', step: 'step overhead' };

const title = (facts: Facts, device: string): string => facts.devices.find((entry) => entry.file.name === device)?.file.title ?? device;

export function planText(plan: TrainingPlan): string {
  const sizes = ([['TP', plan.tensor], ['PP', plan.pipeline], ['CP', plan.context], ['EP', plan.expert], ['DP', plan.data]] as const).filter(([, size]) => size > 1);
  return `${sizes.map(([name, size]) => `${name}${size}`).join(' ') || 'one device'}, ${plan.schedule}${plan.virtual_stages > 1 ? ` × ${plan.virtual_stages}` : ''}, shards ${plan.sharding}, recomputes ${plan.recompute}`;
}

export function trainHeadline(answer: TrainAnswer): string {
  if (!answer.fits) {
    const stage = answer.memory.stages[answer.memory.fullest_stage];
    return `Out of memory: ${bytes(stage?.total_bytes ?? 0)} needed, ${bytes(answer.memory.capacity_bytes)} on each device`;
  }
  return answer.run ? `Trains in ${seconds(86_400 * answer.run.days.value)}` : `${seconds(answer.seconds.value)} per step`;
}

function bigFigures(answer: TrainAnswer): BigFigure[] {
  const [step, unit] = seconds(answer.seconds.value).split(' ', 2);
  const run = answer.run;
  return [
    { name: 'Step', value: step!, unit, estimate: answer.seconds, show: seconds },
    { name: 'Model FLOPs utilization', value: percent(answer.flops.mfu), note: `of the ${answer.flops.peak_dtype} peak` },
    { name: 'Tokens', value: compact(answer.tokens_per_second), unit: '/s', note: `${compact(answer.tokens_per_second_per_device)}/s per device` },
    ...(run?.usd ? [{ name: 'Cost of the run', value: dollars(run.usd.value), estimate: run.usd, show: dollars, note: `${compact(run.device_hours.value)} device-hours` }] : []),
    ...(run && !run.usd ? [{ name: 'Device-hours', value: compact(run.device_hours.value), estimate: run.device_hours, show: compact }] : []),
  ];
}

export function trainCards(answer: TrainAnswer, facts: Facts, headline = trainHeadline(answer)): HTMLElement[] {
  const time = new Plot('Where the step goes');
  const memory = new Plot('Memory of the fullest device', 'flat');
  const { total_bytes: total, ...stage } = answer.memory.stages[answer.memory.fullest_stage] ?? {};
  time.show(timeParts(Object.entries(answer.parts_seconds).map(([name, value]) => ({ name: partNames[name] ?? name, value }))));
  memory.show(memoryBar(Object.entries(stage).map(([name, value]) => ({ name: name.replace('_bytes', ''), value })), answer.memory.capacity_bytes));
  const told = [
    answer.run ? `${compact(answer.run.steps)} steps; ${percent(answer.run.goodput)} of the time is useful work, the rest goes to checkpoints, failures and planned stops.` : '',
    `Steps vary from ${seconds(answer.step_times.p05)} to ${seconds(answer.step_times.p95)} (5% to 95%).`,
    ...(answer.interval_basis?.beyond_runs ?? []).map((text) => `Interval widened: ${text}.`), ...answer.notes].filter((text) => text !== '').join(' ');
  return [
    verdictCard(facts, { state: answer.fits ? 'plain' : 'missed', headline, figures: bigFigures(answer), layer: 'training', notes: answer,
      subject: `${answer.lora_rank > 0 ? `LoRA (rank ${answer.lora_rank}) of ` : 'Training '}${shortName(answer.model)} on ${answer.plan.devices} × ${title(facts, answer.device)}`,
      prose: h('p', { class: 'sentence' }, `${planText(answer.plan)}. ${answer.fits ? '' : 'The times are what they would be with enough memory. '}${told}`) }),
    ...(answer.memory.advice.length > 0 ? [h('section', { class: 'card', 'aria-label': 'What would make it fit' }, h('h2', {}, 'What would make it fit'), h('ul', {}, ...answer.memory.advice.map((text) => h('li', {}, text))))] : []),
    h('div', { class: 'plots' }, time.element, memory.element),
  ];
}

export function trainPlanCards(result: RunResult<TrainPlanAnswer>, facts: Facts): HTMLElement[] {
  const { answer } = result;
  const plot = new Plot('Memory against speed', '', true);
  if (answer.frontier.length > 0) plot.show(frontier(answer));
  return [
    ...(answer.fastest ? trainCards(answer.fastest, facts, `Fastest plan: ${planText(answer.fastest.plan)}`)
      : [verdictCard(facts, { state: 'missed', headline: 'No plan fits in memory', subject: shortName(answer.model), figures: [], notes: answer })]),
    ...(answer.megatron_flags ? [commandCard([answer.megatron_flags], [], 'Flags for Megatron')] : []),
    answer.best.length > 0 ? table('Plans, fastest first', [{ title: 'plan' }, { title: 'step', number: true }, { title: '90% interval', number: true }, { title: 'MFU', number: true }, { title: 'tokens/s per device', number: true }, { title: 'memory', number: true }],
      answer.best.map((point) => [planText(point.plan), seconds(point.seconds.value), `${seconds(point.seconds.low)} to ${seconds(point.seconds.high)}`, percent(point.mfu), compact(point.tokens_per_second_per_device), bytes(point.memory_bytes)])) : h('p', {}),
    h('div', { class: 'plots' }, plot.element),
    h('p', { class: 'muted' }, `${compact(answer.looked_at)} plans were looked at; ${compact(answer.too_large)} do not fit in memory.`),
  ];
}

function frontier(answer: TrainPlanAnswer): PlotContent {
  const points = answer.frontier;
  return {
    summary: `${points.length} plans that no other plan beats in both memory and speed`,
    columns: [{ title: 'plan' }, { title: 'memory', number: true }, { title: 'step', number: true }],
    rows: points.map((point) => [planText(point.plan), bytes(point.memory_bytes), seconds(point.seconds.value)]),
    option: (theme) => ({
      grid: room,
      tooltip: { trigger: 'item', formatter: (item: { data: { name: string; value: [number, number] } }) => `${words(item.data.name)}<br>${compact(item.data.value[0])} GB, ${milliseconds(1000 * item.data.value[1])}` },
      xAxis: axis(theme, 'memory of a device, GB', { type: 'value', scale: true, ...below }),
      yAxis: axis(theme, 'seconds per step', { type: 'log' }),
      series: [{ type: 'line', symbolSize: 7, data: points.map((point) => ({ name: planText(point.plan), value: [point.memory_bytes / 1e9, point.seconds.value] })) }],
    }),
  };
}
