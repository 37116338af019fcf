// A kind of question on Ask: its fields, and how its answer is shown.
import type { Question, RunResult } from './api';
import type { Say } from './task';

// What an answer is shown as: its parts, a line for the history, and rows for a table.
export interface Shown { parts: HTMLElement[]; title: string; verdict: string; rows: (string | number)[][]; after?: () => Promise<void> }

export interface Kind {
  title: string;
  about: string;  // the title in full
  group: string;
  elements: HTMLElement[];
  chosen?: () => void;
  put: (params: URLSearchParams) => void;
  question: () => Question;
  missing?: () => string;  // what a link does not hold: why it cannot be asked yet
  ask: (signal: AbortSignal, say: Say) => Promise<[RunResult<unknown>, Shown]>;
}

// Of the kinds by their names on Ask, the one that a question belongs to.
export function kindOf(params: URLSearchParams): string {
  const command = params.get('command') ?? '';
  if (command.startsWith('kernel ')) return 'kernel';
  if (command === 'replay-run' || command === 'calibrate') return 'run';
  return command === 'serve' && params.get('ramp_up_strategy') === 'daily' ? 'day' : command;
}
