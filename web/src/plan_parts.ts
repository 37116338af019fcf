// The answer of a search over serving layouts.
import type { PlanAnswer, RunResult } from './api';
import { h, table } from './dom';
import { compact, dollars } from './format';
import { commandCard, exportButtons } from './parts';
import { axis, below, Plot, room, type PlotContent } from './plot';

const mostShown = 20;

export function planParts(result: RunResult<PlanAnswer>): HTMLElement[] {
  const { answer } = result;
  const plot = new Plot('Speed for a user against work of a device', '', true);
  queueMicrotask(() => plot.show(frontier(answer)));
  const money = (value: number | null) => value === null ? '–' : dollars(value);
  return [
    h('section', { class: 'card', 'aria-live': 'polite', 'aria-label': 'Answer' }, h('p', { class: 'sentence' }, answer.sentence.trim())),
    answer.commands.length > 0 ? h('section', { class: 'card', 'aria-label': 'To start it' }, h('h2', {}, 'To start it'),
      h('pre', { tabindex: 0, 'aria-label': 'Commands of the engine' }, answer.commands.map(({ count, role, line, note }) =>
        `${count > 1 || role ? `# ${count} ${role || 'such'}\n` : ''}${line}${note ? `\n# ${note}` : ''}`).join('\n'))) : null,
    answer.ranking.length > 0 ? table('Layouts, best first',
      [{ title: 'layout' }, { title: 'devices', number: true }, { title: 'requests/s it takes', number: true }, { title: 'USD/h', number: true },
        { title: 'tokens/s for each device', number: true }, { title: 'USD for a million output tokens', number: true }],
      answer.ranking.slice(0, mostShown).map((point) => [point.layout, String(point.devices),
        `${compact(point.capacity_requests_per_s.value)} (${compact(point.capacity_requests_per_s.low)} to ${compact(point.capacity_requests_per_s.high)})`,
        money(point.usd_per_hour), point.run ? compact(point.run.tokens_per_s_per_device) : '–', money(point.run?.usd_per_million_output_tokens ?? null)])) : null,
    answer.frontier.length > 0 ? h('div', { class: 'plots' }, plot.element) : null,
    commandCard([result.command_line], exportButtons('foretoken-plan', answer, [['layout', 'devices', 'capacity_requests_per_s', 'low', 'high', 'usd_per_hour'],
      ...answer.ranking.map((point) => [point.layout, point.devices, point.capacity_requests_per_s.value, point.capacity_requests_per_s.low, point.capacity_requests_per_s.high, point.usd_per_hour ?? ''])])),
  ].filter((part): part is HTMLElement => part !== null);
}

function frontier(answer: PlanAnswer): PlotContent {
  const points = answer.frontier;
  return {
    summary: `${points.length} runs that no other beats in both`,
    columns: [{ title: 'layout' }, { title: 'requests/s', number: true }, { title: 'tokens/s for a user', number: true }, { title: 'tokens/s for each device', number: true }],
    rows: points.map((point) => [point.key, compact(point.rate), compact(point.tokens_per_s_per_user), compact(point.tokens_per_s_per_device)]),
    option: (theme) => ({
      grid: room,
      tooltip: { trigger: 'item', formatter: (item: { data: { name: string; value: [number, number] } }) =>
        `${item.data.name}<br>${compact(item.data.value[0])} tokens/s for a user, ${compact(item.data.value[1])} for each device` },
      xAxis: axis(theme, 'output tokens/s for a user', { type: 'value', scale: true, ...below }),
      yAxis: axis(theme, 'output tokens/s for each device', { type: 'value', min: 0 }),
      series: [{ type: 'line', symbolSize: 8, data: points.map((point) => ({ name: point.key, value: [point.tokens_per_s_per_user, point.tokens_per_s_per_device] })) }],
    }),
  };
}
