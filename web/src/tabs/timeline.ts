// Timeline: a serving run over time, and as a trace for Perfetto.
import { run, type Facts, type ServeAnswer } from '../api';
import { download, fill, h, submits } from '../dom';
import { milliseconds, percent, seconds } from '../format';
import { commandCard, exportButtons, failureText, figures } from '../parts';
import { perfettoButton } from '../perfetto';
import { Plot } from '../plot';
import { cachePlot, queuePlot, tokenPlot } from '../plots/timeline';
import { ServingForm } from '../serving_form';
import { go, hashOf, paramsOf, typed } from '../state';
import { Task } from '../task';
import { Zoom } from '../zoom';
import type { Tab } from './tab';

export function timelineTab(facts: Facts): Tab {
  const output = h('div', { class: 'stack' });
  const task = new Task(output);
  const form = new ServingForm(facts, 'timeline', { model: 'Llama-3.1-8B', device: 'h100_sxm' });
  // What the page opens with does not move it.
  const simulate = (reveals: boolean) => {
    void task.start(async (signal, say) => {
      say('Simulating…');
      const result = await run<ServeAnswer>({ command: 'serve', ...form.flags(), intervals: false, trace_in_json: true }, signal, say);
      const { trace, ...rest } = result.answer;
      const answer = rest as ServeAnswer;
      const failed = failureText(answer);
      const isServed = answer.completed > 0 && answer.time_series.points.length > 0;
      const plots = [new Plot('Requests', '', true), new Plot('KV cache', '', true), new Plot('Tokens', '', true)] as const;
      const zoom = new Zoom(plots, answer.time_series.points.at(-1)?.begin_s ?? answer.duration);
      const perfetto = perfettoButton(`foretoken: ${answer.model_id} on ${answer.device}`, () => JSON.stringify(trace));
      fill(output,
        failed || !isServed ? h('section', { class: 'card', 'aria-live': 'polite', 'aria-label': 'Answer' }, h('p', { class: 'sentence' },
          h('span', { class: 'missed' }, `${failed || 'No request was served'}.`), isServed ? '' : ' There is no timeline to draw: no request was served.')) : null,
        isServed ? figures([{ name: 'Duration', value: seconds(answer.duration) }, { name: 'Mean wait before the first step', value: milliseconds(answer.mean_queue_ms) },
          { name: 'KV cache, peak use', value: percent(answer.peak_kv_use) }, { name: 'Preemptions', value: String(answer.preemptions) }]) : null,
        isServed ? zoom.element : null,
        isServed ? h('div', { class: 'plots' }, ...plots.map((plot) => plot.element)) : null,
        commandCard([result.command_line.replace('--trace-in-json', '--out-trace trace.json')], isServed ? [
          h('button', { type: 'button', class: 'primary', onclick: () => download('foretoken-trace.json', 'application/json', JSON.stringify(trace)) }, 'Save trace for Perfetto'),
          perfetto.button,
          ...exportButtons('foretoken-timeline', answer, [['begin_s', 'running', 'waiting', 'kv_blocks_used', 'prefill_tokens_per_s', 'decode_tokens_per_s'],
            ...answer.time_series.points.map((point) => [point.begin_s, point.running, point.waiting, point.kv_blocks_used, point.prefill_tokens_per_s, point.decode_tokens_per_s])])] : []),
        isServed ? perfetto.status : null,
        isServed ? h('p', { class: 'muted' }, 'The trace shows every request and step. “Open in Perfetto” opens ui.perfetto.dev in a new window and loads the trace there. Only this button needs an internet connection, and nothing is sent until you click it.') : null);
      if (isServed) {
        plots[0].show(queuePlot(answer));
        plots[1].show(cachePlot(answer));
        plots[2].show(tokenPlot(answer));
      }
      if (reveals) task.reveal();
      say('Done.');
    });
    if (reveals) task.reveal();
  };
  const submit = () => {
    task.expect('Simulating…');
    go(hashOf('timeline', paramsOf({ command: 'serve', ...form.typedFlags() })));
  };
  const restore = (params: URLSearchParams) => {
    const isAsked = params.get('command') === 'serve';
    if (isAsked) form.put(typed(params));
    if (isAsked || output.childElementCount === 0) simulate(isAsked);
  };
  return { restore, element: h('section', { 'aria-labelledby': 'timeline-title' },
    h('h1', { id: 'timeline-title' }, 'What happens during a run?'),
    h('p', { class: 'lead' }, 'Running and waiting requests, KV cache use, and tokens over time.'),
    h('div', { class: 'split' },
      h('form', { class: 'card', novalidate: true, onsubmit: submits(submit), 'aria-label': 'Run' }, ...form.fieldsets,
        h('div', { class: 'buttons' }, h('button', { type: 'submit', class: 'primary' }, 'Simulate'))),
      h('div', { class: 'stack' }, task.element, output))) };
}
