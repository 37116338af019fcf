// Explore: change a number of the hardware and watch the step, the roofline and the memory move.
import { run, type DeviceFile, type Fact, type Facts, type Fields, type StepAnswer } from '../api';
import { announce, download, fill, h, problemOf, submits } from '../dom';
import { bytes, compact, percent, seconds, speed } from '../format';
import { commandCard, deviceNotes, exportButtons, figures, withRange } from '../parts';
import { Plot } from '../plot';
import { roofline } from '../plots/roofline';
import { engineMemory, timeParts } from '../plots/shares';
import { StepForm } from '../step_form';
import { stepParts } from '../step_parts';
import { go, hashOf, paramsOf, typed } from '../state';
import { Task } from '../task';
import type { Tab } from './tab';

interface Knob { key: string; label: string; unit: string }

const knobs: Knob[] = [
  { key: 'memory_bandwidth_gb_per_s', label: 'Memory bandwidth', unit: 'GB/s' },
  { key: 'dense_peak_tflops', label: 'Peak, all number formats', unit: 'times' },
  { key: 'processors', label: 'Processors (SMs)', unit: '' },
  { key: 'last_level_cache_mib', label: 'Last-level cache', unit: 'MiB' },
  { key: 'memory_gb', label: 'Memory', unit: 'GB' },
  { key: 'link_bandwidth_gb_per_s', label: 'Link, one direction', unit: 'GB/s' },
];
const whole = new Set(['processors']);
const steps = 20;  // of the slider, to each side: a quarter and four times

const clone = (device: DeviceFile): DeviceFile => JSON.parse(JSON.stringify(device)) as DeviceFile;

// The device with its number(s) at `factor` times what the file says.
function change(device: DeviceFile, key: string, factor: number): void {
  const scale = (fact: Fact) => {
    fact.value = whole.has(key) ? Math.max(1, Math.round(fact.value * factor)) : fact.value * factor;
    fact.source = `changed by hand from ${fact.source}`;
    fact.assumed = true;
  };
  if (key === 'dense_peak_tflops') {
    Object.values(device.dense_peak_tflops ?? {}).forEach(scale);
    return;
  }
  scale(device[key] as Fact);
  // Less than the whole is offered to programs; it grows with it.
  if (key === 'memory_gb' && device.allocatable_memory_mib) scale(device.allocatable_memory_mib as Fact);
}

export function exploreTab(facts: Facts): Tab {
  const output = h('div', { class: 'stack' });
  const task = new Task(output);
  const form = new StepForm(facts, 'Step', { model: 'Llama-3.1-8B', device: 'h100_sxm', batch: 32 });
  const sliders = h('div', { class: 'stack' });
  const factors = new Map<string, number>();
  const plots = { roof: new Plot('Roofline', 'tall', true), time: new Plot('Where the step’s time goes'), memory: new Plot('Memory of a device', 'flat') };
  const answer = h('section', { class: 'card', 'aria-live': 'polite', 'aria-label': 'Answer' });
  const numbers = h('div');
  const commands = h('div');
  let own: DeviceFile | undefined;  // a device of the visitor's
  const shipped = () => own ?? facts.devices.find((entry) => entry.file.name === form.deviceName())!.file;

  const changed = (): DeviceFile => {
    const device = clone(shipped());
    for (const [key, factor] of factors) change(device, key, factor);
    return device;
  };

  const predict = () => void task.start(async (signal, say) => {
    say('Predicting…');
    const device = changed();
    // The memory of an engine, where one serves on the device.
    const serves = own ? device.memory_gb !== undefined : facts.devices.some((entry) => entry.file.name === device.name && entry.engines.length > 0);
    const flags: Fields = { ...form.flags(), ...(serves ? { memory: true } : {}) };
    const isChanged = factors.size > 0;
    const isSent = isChanged || own !== undefined;  // else the server knows it by name
    // Both as devices of their own, so that what was measured on the real one moves neither away from the other.
    const now = isSent ? await run<StepAnswer>({ command: 'step', ...flags, device }, signal)
      : await run<StepAnswer>({ command: 'step', ...flags, device: device.name }, signal);
    const before = isChanged ? await run<StepAnswer>({ command: 'step', ...flags, device: clone(shipped()) }, signal) : now;
    if (!plots.roof.element.isConnected) {
      fill(output, answer, numbers, h('div', { class: 'plots' }, plots.roof.element, plots.time.element, plots.memory.element), commands);
    }
    const needed = Math.max(...now.answer.stages.map((stage) => stage.memory_bytes.total ?? 0));
    const available = now.answer.device_memory_bytes;
    const isTooLarge = now.answer.fits_in_memory === false;
    fill(answer, h('p', { class: 'sentence' },
      isTooLarge ? h('span', { class: 'missed' }, `Does not fit in memory${available && needed > available ? `: ${bytes(needed)} needed, ${bytes(available)} available` : ''}.`) : '',
      isTooLarge ? ` With enough memory a ${now.answer.phase} step would take ` : `A ${now.answer.phase} step takes `, withRange(now.answer.seconds, seconds),
      isChanged ? `, ${speed(before.answer.seconds.value, now.answer.seconds.value)}${now.answer.seconds.value === before.answer.seconds.value ? ' as' : ' than'} with the numbers as they ship` : '', '.'), ...deviceNotes(now.answer, now.answer.device_notes ? undefined : now.answer.seconds.confidence));
    fill(numbers, figures([
      { name: 'Step', value: seconds(now.answer.seconds.value), note: isChanged ? `before ${seconds(before.answer.seconds.value)}` : undefined },
      { name: 'Tokens/s', value: compact(now.answer.tokens_per_second), note: isChanged ? `before ${compact(before.answer.tokens_per_second)}` : undefined },
      { name: 'Share of the peak', value: percent(now.answer.mfu) },
      { name: 'Host and device', value: now.answer.gap.verdict },
    ]));
    plots.roof.show(roofline(now.answer, device, isChanged ? shipped() : undefined));
    plots.time.show(timeParts(stepParts(now.answer)));
    plots.memory.element.hidden = !now.answer.serving_memory;
    if (now.answer.serving_memory) plots.memory.show(engineMemory(now.answer.serving_memory));
    const fileName = `${device.name}_changed.json`;
    fill(commands, commandCard([now.command_line], [
      ...exportButtons('foretoken-step', now.answer, [['part', 'seconds'], ...stepParts(now.answer).map((part) => [part.name, part.value])]),
      ...(isSent ? [h('button', { type: 'button', onclick: () => download(fileName, 'application/json', JSON.stringify(device, null, 2)) }, `Save ${fileName}`)] : [])]));
    announce(task.status, `Step: ${seconds(now.answer.seconds.value)}.`);
  });
  const submit = () => {
    task.expect('Predicting…');
    go(hashOf('explore', paramsOf({ command: 'step', ...form.flags(), device: form.deviceName() })));
  };
  const restore = (params: URLSearchParams) => {
    if (params.get('command') !== 'step') {
      if (!plots.roof.element.isConnected) predict();  // opens with an answer
      return;
    }
    form.put(typed(params));
    if (form.deviceName() !== device) useOwn(undefined);
    device = form.deviceName();
    predict();
    task.reveal();
  };

  let waiting = 0;
  const soon = () => {
    clearTimeout(waiting);
    waiting = window.setTimeout(() => {
      if (section.querySelector('form')!.checkValidity()) predict();
    }, 250);
  };

  const slider = (knob: Knob): HTMLElement | null => {
    const file = shipped();
    const isPeak = knob.key === 'dense_peak_tflops';
    const base = isPeak ? 1 : (file[knob.key] as Fact | undefined)?.value;
    if (base === undefined) return null;
    const shown = (factor: number) => String(whole.has(knob.key) ? Math.round(base * factor) : Number((base * factor).toPrecision(4)));
    const range = h('input', { type: 'range', min: -steps, max: steps, step: 1, value: '0', 'aria-label': `${knob.label}, slider` });
    const number = h('input', { type: 'number', min: base / 1000, max: base * 1000, step: 'any', required: true, value: shown(1), 'aria-label': `${knob.label}${knob.unit ? `, ${knob.unit}` : ''}` });
    const set = (factor: number) => {
      if (factor === 1) factors.delete(knob.key);
      else factors.set(knob.key, factor);
      soon();
    };
    range.addEventListener('input', () => {
      const factor = 4 ** (Number(range.value) / steps);
      range.setAttribute('aria-valuetext', `${shown(factor)} ${knob.unit}`);
      number.value = shown(factor);
      set(factor);
    });
    number.addEventListener('change', () => {
      if (!number.checkValidity()) return;
      const factor = Number(number.value) / base;
      range.value = String(Math.round(steps * Math.log(factor) / Math.log(4)));
      set(Math.abs(factor - 1) < 1e-3 ? 1 : factor);
    });
    return h('div', { class: 'slider' }, h('span', { class: 'label' }, h('span', {}, knob.label), h('span', {}, isPeak ? '× as it ships' : knob.unit)), range, number, problemOf(number));
  };

  const reset = () => {
    factors.clear();
    fill(sliders, ...knobs.map(slider));
  };
  const chipText = h('textarea', { rows: 8, spellcheck: 'false', 'aria-label': 'Device file', placeholder: 'Paste a device file (JSON), or start from the chosen device' });
  const chipProblem = h('p', { class: 'problem', role: 'alert' });
  const useOwn = (file: DeviceFile | undefined) => {
    own = file;
    if (!file) chipText.value = '';
    chipProblem.textContent = '';
    reset();
  };
  chipText.addEventListener('change', () => {
    if (chipText.value.trim() === '') return useOwn(undefined);
    try {
      const file = JSON.parse(chipText.value) as DeviceFile;
      if (typeof file !== 'object' || file === null || typeof file.name !== 'string') throw new Error('a device file is an object with a name');
      useOwn(file);
      soon();
    } catch (error) {
      chipProblem.textContent = `This is no device file: ${error instanceof Error ? error.message : String(error)}`;
    }
  });
  const startFrom = () => {
    const file = clone(shipped());
    file.name = `my_${file.name}`;
    file.title = `My ${file.title}`;
    delete file.aliases;
    chipText.value = JSON.stringify(file, null, 2);
    useOwn(file);
    soon();
  };
  reset();
  let device = form.deviceName();
  form.element.addEventListener('change', () => {
    if (form.deviceName() !== device) useOwn(undefined);
    device = form.deviceName();
    soon();
  });

  const section = h('section', { 'aria-labelledby': 'explore-title' },
    h('h1', { id: 'explore-title' }, 'What if the hardware were different?'),
    h('p', { class: 'lead' }, 'Change a number of the device and watch the step time, the operators on the roofline, and the memory. Each number changes alone: more processors do not raise the peak.'),
    h('div', { class: 'split' },
      h('form', { class: 'card', 'aria-label': 'Step and hardware', novalidate: true, onsubmit: submits(submit) }, form.element,
        h('fieldset', {}, h('legend', {}, 'Hardware numbers'), sliders),
        h('details', {}, h('summary', {}, 'My own chip'), h('div', { class: 'stack' },
          h('p', { class: 'muted' }, 'Describe a chip that is not in the library, or that nobody has built yet. Each number says where it comes from.'),
          h('button', { type: 'button', class: 'small', onclick: startFrom }, 'Start from the chosen device'), chipText, chipProblem)),
        h('div', { class: 'buttons' }, h('button', { type: 'submit', class: 'primary' }, 'Predict'),
          h('button', { type: 'button', onclick: () => { reset(); soon(); } }, 'Reset'))),
      h('div', { class: 'stack' }, task.element, output)));
  return { element: section, restore };
}
