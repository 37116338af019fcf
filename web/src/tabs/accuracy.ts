// Accuracy: predictions against what was measured, by layer, and scenarios of the suite that were measured.
import { run, type AccuracyGroup, type Facts } from '../api';
import { fill, h, table } from '../dom';
import { choiceField } from '../fields';
import { compact } from '../format';
import { commandCard } from '../parts';
import { Plot } from '../plot';
import { predictedAgainstMeasured } from '../plots/accuracy';
import { Task } from '../task';

interface SuiteAnswer { scenarios: { id: string; answer?: { value: number; low: number | null; high: number | null }; error?: string }[] }

export function accuracyTab(facts: Facts): HTMLElement {
  const { groups, note } = facts.accuracy;
  const layers = [...new Set(groups.map((group) => group.layer))];
  const layer = choiceField('Layer', [['', 'all layers'], ...layers.map((name): [string, string] => [name, name])], '');
  const seen = choiceField('Rows', [['', 'all'], ...[...new Set(groups.map((group) => group.seen))].map((name): [string, string] => [name, name])], '');
  const plot = new Plot('Predicted against measured', 'tall', true);
  const rows = h('div');
  const show = () => {
    const chosen = groups.filter((group) => (layer.control.value === '' || group.layer === layer.control.value) && (seen.control.value === '' || group.seen === seen.control.value));
    plot.show(predictedAgainstMeasured(chosen.map((group) => ({ layer: group.layer, name: group.group, unit: group.unit, measured: group.measured, predicted: group.predicted }))));
    fill(rows, groupTable(chosen));
  };
  for (const control of [layer.control, seen.control]) control.addEventListener('change', show);
  const section = h('section', { 'aria-labelledby': 'accuracy-title' },
    h('h1', { id: 'accuracy-title' }, 'How far off are the predictions?'),
    h('p', { class: 'lead' }, note),
    h('div', { class: 'stack' }, h('div', { class: 'card row' }, layer.element, seen.element), h('div', { class: 'plots' }, plot.element), rows, scenarioCard(facts)));
  queueMicrotask(show);
  return section;
}

function groupTable(groups: AccuracyGroup[]): HTMLElement {
  return table('Groups of measurements',
    [{ title: 'group' }, { title: 'layer' }, { title: 'rows', number: true }, { title: 'mean error', number: true }, { title: 'in the 90% interval', number: true }, { title: 'fit' }, { title: 'source' }],
    groups.map((group) => [group.group, group.layer, compact(group.count), `${compact(group.mape, 2)}%`, group.within_interval === undefined ? '–' : `${compact(group.within_interval, 2)}%`, group.seen, group.source]));
}

function scenarioCard(facts: Facts): HTMLElement {
  const output = h('div', { class: 'stack' });
  const task = new Task(output);
  const measured = facts.scenarios.filter((scenario) => scenario.measured);
  const predict = () => void task.start(async (signal, say) => {
    say('Predicting the scenarios…');
    const result = await run<SuiteAnswer>({ command: 'suite', flags: { only: measured.map((scenario) => scenario.id) } }, signal, say);
    const of = new Map(result.answer.scenarios.map((scenario) => [scenario.id, scenario.answer]));
    fill(output, table('Measured scenarios of the suite',
      [{ title: 'scenario' }, { title: 'metric' }, { title: 'predicted', number: true }, { title: 'measured', number: true }, { title: 'off by', number: true }, { title: 'source' }],
      measured.map((scenario) => {
        const answer = of.get(scenario.id);
        const value = scenario.measured!.value;
        return [`${scenario.id} ${scenario.name}`, `${scenario.metric}, ${scenario.unit}`, answer ? compact(answer.value) : '–', compact(value),
          answer ? `${compact(100 * (answer.value / value - 1), 2)}%` : '–', scenario.measured!.source];
      })), commandCard([result.command_line]));
    say('Done.');
  });
  return h('section', { class: 'card', 'aria-labelledby': 'scenarios-title' },
    h('h2', { id: 'scenarios-title' }, 'Scenarios of the suite'),
    h('p', { class: 'muted' }, `${measured.length} of ${facts.scenarios.length} scenarios were measured and published by somebody. Predict them now:`),
    h('div', { class: 'buttons' }, h('button', { type: 'button', class: 'primary', onclick: predict }, 'Predict'), task.stop),
    task.bar, task.status, output);
}
