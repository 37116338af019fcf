// A measured run beside its prediction, and what calibration learned from one.
import type { CalibrationAnswer, Facts, ReplayAnswer } from './api';
import { download, h } from './dom';
import { compact, milliseconds, percent, shortName } from './format';
import { tableCard } from './parts';
import { axis, below, Plot, room, type PlotContent } from './plot';
import { verdictCard } from './verdict';

const metricNames: Record<string, string> = { ttft_ms: 'First token', tpot_ms: 'Per output token', e2e_ms: 'End to end' };
const signed = (share: number): string => `${share > 0 ? '+' : ''}${compact(100 * share, 2)}%`;

export function replayHeadline(answer: ReplayAnswer): string {
  const first = answer.explanations[0];
  if (answer.agrees) return 'The prediction agrees with the run';
  return first ? `The prediction differs: ${first.fact}` : 'The prediction differs from the run';
}

export function replayParts(answer: ReplayAnswer, facts: Facts): HTMLElement[] {
  const device = facts.devices.find(({ file }) => file.name === answer.device)?.file.title ?? answer.device;
  const medians = answer.numbers.filter(({ statistic }) => statistic === 'p50');
  const plots = (['ttft', 'tpot', 'e2e'] as const).map((metric) => {
    const plot = new Plot(`${metricNames[`${metric}_ms`]} over the run`, '', metric === 'e2e');
    plot.show(overRun(answer, metric));
    return plot;
  });
  return [
    verdictCard(facts, { state: answer.agrees ? 'met' : 'unsure', headline: replayHeadline(answer), layer: 'serving', notes: {}, subject: `${answer.run}: ${shortName(answer.model)} on ${device}`,
      figures: medians.map(({ metric, measured_ms, predicted_ms, low_ms, high_ms }) => {
        const [value, unit] = milliseconds(predicted_ms).split(' ', 2);
        return { name: `${metricNames[metric] ?? metric}, median`, value: value!, unit, estimate: { value: predicted_ms, low: low_ms, high: high_ms }, show: milliseconds,
          note: `measured ${milliseconds(measured_ms)} (prediction ${signed(predicted_ms / measured_ms - 1)})` };
      }) }),
    ...(answer.explanations.length > 0 ? [tableCard('What explains the difference', [{ title: 'fact' }, { title: 'kind' }, { title: 'share of the squared error', number: true }], answer.explanations.map(({ fact, kind, explains }) => [fact, kind, percent(explains)]))] : []),
    h('div', { class: 'plots' }, ...plots.map(({ element }) => element)),
    tableCard('Measured and predicted', [{ title: 'metric' }, { title: 'measured', number: true }, { title: 'predicted', number: true }, { title: '90% interval', number: true }, { title: 'error', number: true }],
        answer.numbers.map(({ metric, statistic, measured_ms, predicted_ms, low_ms, high_ms }) => [`${metricNames[metric] ?? metric}, ${statistic}`, milliseconds(measured_ms), milliseconds(predicted_ms),
          `${milliseconds(low_ms)} to ${milliseconds(high_ms)}`, signed(predicted_ms / measured_ms - 1)])),
  ];
}

function overRun(answer: ReplayAnswer, metric: 'ttft' | 'tpot' | 'e2e'): PlotContent {
  const lines = [['measured', `${metric}_ms`], ['predicted', `predicted_${metric}_ms`]] as const;
  const windows = answer.over_time;
  return {
    summary: lines.map(([name, key]) => `${name} ${milliseconds(windows.reduce((sum, window) => sum + window[key], 0) / Math.max(1, windows.length))} on average`).join(', '),
    columns: [{ title: 'requests of' }, ...lines.map(([title]) => ({ title, number: true }))],
    rows: windows.map((window) => [window.name, ...lines.map(([, key]) => milliseconds(window[key]))]),
    option: (theme) => ({
      grid: room,
      legend: { data: lines.map(([name]) => name) },
      tooltip: { trigger: 'axis', valueFormatter: (value: number) => milliseconds(value) },
      xAxis: axis(theme, 'requests that arrived at', { type: 'category', data: windows.map(({ name }) => name), ...below, axisLabel: { color: theme.muted, fontSize: 11, hideOverlap: true } }),
      yAxis: axis(theme, 'ms', { type: 'value', scale: true }),
      series: lines.map(([name, key]) => ({ name, type: 'line', symbolSize: 6, lineStyle: { type: name === 'measured' ? 'solid' : 'dashed' }, data: windows.map((window) => window[key]) })),
    }),
  };
}

const constantNames: Record<string, string> = { host: 'host time of each step', level: 'time of every kernel', prompt: 'kernels in steps with prompts', attention: 'attention kernels', experts: 'expert kernels',
  collectives: 'communication', front: 'latency between client and engine' };
const mean = (values: number[]): number => values.reduce((sum, value) => sum + value, 0) / Math.max(1, values.length);

export function calibrationHeadline({ runs }: CalibrationAnswer): string {
  const error = (of: 'before' | 'after') => mean(runs.map((run) => Math.abs(run[of] / run.measured - 1)));
  return `Mean error ${percent(error('before'))} before, ${percent(error('after'))} after calibration`;
}

export function calibrationParts(answer: CalibrationAnswer, facts: Facts): HTMLElement[] {
  const constants = Object.entries(answer.engines[0]?.posterior.constants ?? {}).filter(([name]) => answer.constants_fitted.includes(name));
  const ends = ({ log, sd }: { log: number; sd: number }) => [Math.exp(log - 1.645 * sd), Math.exp(log + 1.645 * sd)].map((end) => compact(end, 3)).join(' to ');
  const leftOut = answer.runs.filter((run) => run.left_out !== null).map((run) => Math.abs(run.left_out! / run.measured - 1));
  const next = answer.next_loads[0];
  return [
    verdictCard(facts, { state: 'plain', headline: calibrationHeadline(answer), notes: {}, subject: `Learned from ${new Set(answer.runs.map(({ run }) => run)).size} parts of the run, ${answer.engine} on ${answer.device}`,
      figures: leftOut.length > 0 ? [{ name: 'Error on parts left out', value: percent(mean(leftOut)), note: 'predicted without that part' }] : [],
      prose: h('p', { class: 'sentence' }, answer.cannot_tell.length > 0 ? `This run cannot determine: ${answer.cannot_tell.map((name) => constantNames[name] ?? name).join(', ')}. ` : '',
        next ? `The most informative next run: ${next.max_concurrency ? `${next.max_concurrency} concurrent requests, ` : ''}${next.random_input_len} prompt and ${next.random_output_len} output tokens, ${next.num_prompts} requests.` : '') }),
    tableCard('What was learned', [{ title: 'constant' }, { title: 'factor', number: true }, { title: '90% interval', number: true }], constants.map(([name, constant]) => [constantNames[name] ?? name, compact(constant.factor), ends(constant)]),
      h('p', { class: 'buttons' }, h('button', { type: 'button', class: 'primary', onclick: () => download('deployment.json', 'application/json', JSON.stringify(answer, null, 2)) }, 'Save deployment file')),
      h('p', { class: 'muted' }, 'Use it with “foretoken serve --deployment deployment.json”.')),
    tableCard('Before and after', [{ title: 'part of the run' }, { title: 'metric' }, { title: 'measured', number: true }, { title: 'error before', number: true }, { title: 'after', number: true }, { title: 'left out', number: true }],
        answer.runs.map((run) => [run.run, metricNames[run.metric] ?? run.metric, milliseconds(run.measured), signed(run.before / run.measured - 1), signed(run.after / run.measured - 1), run.left_out === null ? '' : signed(run.left_out / run.measured - 1)])),
  ];
}
