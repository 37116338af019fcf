// Questions of Ask about parts and fleets: a kernel, an accelerator, a network on a CPU, a day, a measured run.
import { run, type AccelAnswer, type CalibrationAnswer, type EdgeAnswer, type Facts, type FleetAnswer, type KernelAnswer, type ReplayAnswer } from './api';
import { accelHeadline, accelParts } from './accel_answer';
import { AccelForm } from './accel_form';
import type { Kind } from './ask_kind';
import { dayHeadline, dayParts } from './day_answer';
import { DayForm } from './day_form';
import { edgeHeadline, edgeParts } from './edge_answer';
import { EdgeForm } from './edge_form';
import { shortName, words } from './format';
import { kernelHeadline, kernelParts, kernelSweep } from './kernel_answer';
import { KernelForm } from './kernel_form';
import { Plot } from './plot';
import { calibrationHeadline, calibrationParts, replayHeadline, replayParts } from './run_answer';
import { RunForm } from './run_form';
import { typed } from './state';

export function partKinds(facts: Facts): Record<string, Kind> {
  const day = new DayForm(facts), kernel = new KernelForm(facts), accel = new AccelForm(facts), edge = new EdgeForm(facts), measured = new RunForm(facts);
  return {
    day: {
      title: 'Day', about: 'A day of traffic with autoscaling', group: 'Serve', elements: [day.element], put: (params) => day.put(typed(params)), question: () => day.question(),
      ask: async (signal, say) => {
        const question = day.question(), period = day.period(), all = Number(question.num_prompts);
        const result = await run<FleetAnswer>(question, signal, (text) => say(text, Number(/^(\d+)/.exec(text)?.[1] ?? 0) / all));
        const { answer } = result;
        return [result, { parts: dayParts(answer, facts, period), title: `A day of ${shortName(answer.model_id)} on ${answer.device}`, verdict: dayHeadline(answer, facts, period),
          rows: [['from_s', 'serving', 'paid_for'], ...(answer.fleet?.sizes ?? []).map((size) => [size.from_s, size.serving, size.paid_for])] }];
      },
    },
    run: {
      title: 'My run', about: 'Compare or calibrate with a measured run', group: 'Serve', elements: [measured.element], put: (params) => measured.put(typed(params)), question: () => measured.question(), missing: () => measured.missing(),
      ask: async (signal, say) => {
        const request = await measured.request();
        if (measured.learns()) {
          const result = await run<CalibrationAnswer>(request, signal, say);
          return [result, { parts: calibrationParts(result.answer, facts), title: `Calibration of ${result.answer.engine} on ${result.answer.device}`, verdict: calibrationHeadline(result.answer),
            rows: [['run', 'metric', 'measured', 'before', 'after'], ...result.answer.runs.map((one) => [one.run, one.metric, one.measured, one.before, one.after])] }];
        }
        const result = await run<ReplayAnswer>(request, signal, say);
        return [result, { parts: replayParts(result.answer, facts), title: `Run of ${shortName(result.answer.model)} on ${result.answer.device}`, verdict: replayHeadline(result.answer),
          rows: [['metric', 'statistic', 'measured_ms', 'predicted_ms', 'low_ms', 'high_ms'], ...result.answer.numbers.map((one) => [one.metric, one.statistic, one.measured_ms, one.predicted_ms, one.low_ms, one.high_ms])] }];
      },
    },
    kernel: {
      title: 'Kernel', about: 'One kernel on one device', group: 'Parts', elements: [kernel.element], put: (params) => kernel.put(typed(params)), question: () => kernel.question(),
      ask: async (signal, say) => {
        const result = await run<KernelAnswer>(kernel.question(), signal, say);
        const { answer } = result;
        const size = kernel.sweep()?.name ?? 'size';
        const curve = new Plot(`Time against ${words(size)}`, 'tall');
        return [result, { parts: kernelParts(answer, facts, curve), title: `${words(answer.family)} on ${answer.device}`, verdict: kernelHeadline(answer),
          rows: [['kind', 'name', 'value', 'unit'], ...answer.explanation.map((one) => [one.kind, one.name, one.value, one.unit])], after: () => kernelSweep(kernel, curve, signal, say) }];
      },
    },
    accel: {
      title: 'Chip', about: 'A custom accelerator', group: 'Parts', elements: [accel.element], put: (params) => accel.put(typed(params)), question: () => accel.question(),
      ask: async (signal, say) => {
        const result = await run<AccelAnswer>(accel.question(), signal, say);
        const { answer } = result;
        return [result, { parts: accelParts(answer, facts), title: `${words(answer.problem ?? 'Network')} on ${words(answer.architecture)}`, verdict: accelHeadline(answer),
          rows: [['layer', 'cycles', 'seconds', 'energy_pj'], ...(answer.layers ?? []).map((one) => [one.problem, one.cycles, one.seconds, one.energy_pj])] }];
      },
    },
    edge: {
      title: 'Edge', about: 'A network on a CPU or GPU', group: 'Parts', elements: [edge.element], put: (params) => edge.put(typed(params)), question: () => edge.question(), missing: () => edge.missing(),
      ask: async (signal, say) => {
        const result = await run<EdgeAnswer>(await edge.request(), signal, say);
        const { answer } = result;
        return [result, { parts: edgeParts(answer, facts), title: `${answer.model} on ${answer.device}`, verdict: edgeHeadline(answer),
          rows: [['step', 'calls', 'seconds'], ...answer.steps.map((step) => [step.operators ?? step.operator ?? step.node ?? '', step.calls, typeof step.seconds === 'number' ? step.seconds : step.seconds.value])] }];
      },
    },
  };
}
