// Reading a few words: taking out what was understood, so that the rest can be told.

export const plain = (text: string): string => text.toLowerCase().replaceAll(/[^a-z0-9]/g, '');
export const pieces = (text: string): string[] => text.toLowerCase().split(/[^a-z0-9.]+/).filter((piece) => piece !== '');
const escaped = (text: string): string => text.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&');

// "1k", "4096", "1.5T".
export function amount(text: string): number {
  const [, number = '', unit = ''] = /^([0-9.]+)\s*([kmbgt]?)/i.exec(text) ?? [];
  const scale: Record<string, number> = { k: 1e3, m: 1e6, b: 1e9, g: 1e9, t: 1e12 };
  return Number(number) * (scale[unit.toLowerCase()] ?? 1);
}

// The longest run of words that names one.
export function longestName<Entry>(text: string, entries: Entry[], names: (entry: Entry) => string[]): { entry: Entry; words: string } | undefined {
  const words = text.split(/[\s,;]+/).filter((word) => word !== '');
  const known = new Map<string, Entry>();
  for (const entry of entries) for (const name of names(entry)) if (!known.has(plain(name))) known.set(plain(name), entry);
  for (let length = Math.min(5, words.length); length > 0; --length) {
    for (let i = 0; i + length <= words.length; ++i) {
      const run = words.slice(i, i + length);
      const entry = known.get(plain(run.join('')));
      if (entry) return { entry, words: run.join(' ') };
    }
  }
  return undefined;
}

// Takes what a pattern finds out of the text.
export class Reader {
  constructor(public text: string) {}
  take(pattern: RegExp): RegExpExecArray | null {
    const found = pattern.exec(this.text);
    if (found) this.text = `${this.text.slice(0, found.index)} , ${this.text.slice(found.index + found[0].length)}`;
    return found;
  }
  // What is named, and the number before it ("8 h100"; 0 = none).
  takeNamed<Entry>(entries: Entry[], names: (entry: Entry) => string[]): { entry: Entry; count: number; words: string } | undefined {
    const found = longestName(this.text, entries, names);
    if (!found) return undefined;
    const named = found.words.split(' ').map(escaped).join('[\\s,;]+');
    const taken = this.take(new RegExp(`(?:(\\d+)\\s+)?${named}s?`));
    return { ...found, count: Number(taken?.[1] ?? 0) };
  }
}

const filler = /\b(on|with|at|for|and|a|an|the|of|in|to|serve|serving|run|chat|model|gpus?|devices?|will|can|i|how|fast|long|is|does|it|takes?|what|weights?|using|my|kernel|chip|design|accelerator|step)\b/g;
export const withoutFiller = (text: string): string => text.replaceAll(filler, ' ');
