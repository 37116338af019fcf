// A fleet over a day: what it costs, how late it is, and how many replicas run when.
import type { Facts, FleetAnswer } from './api';
import { h } from './dom';
import { compact, dollars, milliseconds, percent, shortName } from './format';
import { failureText } from './parts';
import { axis, below, Plot, room, type PlotContent } from './plot';
import { queuePlot, tokenPlot } from './plots/timeline';
import { verdictCard, type BigFigure } from './verdict';

const hours = (s: number): number => s / 3600;

interface Day { cost?: number; deviceHours: number }

// `period`: the simulated seconds that stand for a day.
function dayOf(answer: FleetAnswer, facts: Facts, period: number): Day {
  const simulated = answer.fleet?.gpu_hours ?? hours(answer.duration) * answer.devices;
  const deviceHours = simulated * 86_400 / period;
  const rent = facts.devices.find((entry) => entry.file.name === answer.device)?.rent_usd_per_hour?.value;
  return { deviceHours, cost: rent === undefined ? undefined : rent * deviceHours };
}

export function dayHeadline(answer: FleetAnswer, facts: Facts, period: number): string {
  const { cost, deviceHours } = dayOf(answer, facts, period);
  return failureText(answer) || (cost === undefined ? `${compact(deviceHours)} device-hours a day` : `${dollars(cost)} a day`);
}

export function dayParts(answer: FleetAnswer, facts: Facts, period: number): HTMLElement[] {
  const { cost, deviceHours } = dayOf(answer, facts, period);
  const serving = answer.fleet?.replicas_serving;
  const replicas = new Plot('Replicas', '', true), requests = new Plot('Requests', '', true), tokens = new Plot('Tokens', '', true);
  const late = (name: string, label: string): BigFigure => {
    const [value, unit] = milliseconds(Number(answer[name])).split(' ', 2);
    return { name: label, value: value!, unit };
  };
  if (answer.fleet) replicas.show(sizesPlot(answer));
  requests.show(queuePlot(answer));
  tokens.show(tokenPlot(answer));
  const failed = failureText(answer);
  const told = answer.fleet ? `${serving!.least === serving!.most ? `${compact(serving!.mean)} replicas serve all day` : `Between ${compact(serving!.least)} and ${compact(serving!.most)} replicas serve, ${compact(serving!.mean)} on average`}; `
    + `${compact(answer.fleet.starts)} starts, each after a cold start of ${compact(answer.fleet.cold_start_s)} s.` : `${compact(answer.replicas)} replicas serve all day.`;
  return [
    verdictCard(facts, { state: failed ? 'missed' : 'plain', headline: dayHeadline(answer, facts, period), layer: 'serving', notes: answer,
      subject: `${shortName(answer.model_id)} on ${answer.device}, ${compact(answer.request_rate ?? 0)} requests/s on average`,
      figures: [...(cost === undefined ? [] : [{ name: 'Cost of a day', value: dollars(cost), note: `${compact(deviceHours)} device-hours` }]),
        late('p99_ttft_ms', 'First token, p99'), late('p99_tpot_ms', 'Per output token, p99'),
        { name: 'KV cache, peak use', value: percent(answer.peak_kv_use) }],
      prose: h('p', { class: 'sentence' }, `${told} ${period < 86_400 ? `The day was simulated in ${compact(hours(period))} hours; cost is scaled to 24 hours.` : ''}`) }),
    h('div', { class: 'plots' }, answer.fleet ? replicas.element : null, requests.element, tokens.element),
  ];
}

function sizesPlot(answer: FleetAnswer): PlotContent {
  const sizes = answer.fleet.sizes;
  const ends = [...sizes, { ...sizes.at(-1)!, from_s: answer.duration }];
  const lines = [['serving', 'serving'], ['paid for', 'paid_for']] as const;
  return {
    summary: `from ${compact(answer.fleet.replicas_serving.least)} to ${compact(answer.fleet.replicas_serving.most)} serving`,
    columns: [{ title: 'from, hours', number: true }, ...lines.map(([title]) => ({ title, number: true }))],
    rows: sizes.map((size) => [compact(hours(size.from_s)), compact(size.serving), compact(size.paid_for)]),
    option: (theme) => ({
      grid: room,
      legend: { data: lines.map(([title]) => title) },
      tooltip: { trigger: 'axis', valueFormatter: (value: number) => compact(value) },
      xAxis: axis(theme, 'hours', { type: 'value', max: Number(hours(answer.duration).toPrecision(3)), ...below }),
      yAxis: axis(theme, 'replicas', { type: 'value', min: 0, minInterval: 1 }),
      series: lines.map(([title, key]) => ({ name: title, type: 'line', symbol: 'none', step: 'end', areaStyle: key === 'serving' ? { opacity: 0.15 } : undefined,
        data: ends.map((size) => [hours(size.from_s), size[key]]) })),
    }),
  };
}
