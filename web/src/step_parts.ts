// What a step's time is made of.
import type { StepAnswer } from './api';
import type { Part } from './plots/shares';

// Operators by name, and what lies between them.
export function stepParts(answer: StepAnswer): Part[] {
  const sums = new Map<string, number>();
  for (const stage of answer.stages) {
    for (const operator of stage.operators) sums.set(operator.name, (sums.get(operator.name) ?? 0) + operator.seconds.value);
  }
  const between = answer.gap.launch_gap_seconds + answer.gap.host_stall_seconds;
  return [...[...sums].map(([name, value]) => ({ name, value })), { name: 'launches and host', value: between }];
}
