// Numbers as people read them.

export function compact(value: number, digits = 3): string {
  if (!Number.isFinite(value)) return '–';
  if (value === 0) return '0';
  const size = Math.abs(value);
  if (size >= 1000) return Math.round(value).toLocaleString('en-US');
  return String(Number(value.toPrecision(digits)));
}

const second = 1000, minute = 60 * second, hour = 60 * minute, day = 24 * hour;

export function milliseconds(ms: number): string {
  const size = Math.abs(ms);
  if (size >= 2 * day) return `${compact(ms / day)} days`;
  if (size >= 2 * hour) return `${compact(ms / hour)} h`;
  if (size >= 10 * minute) return `${compact(ms / minute)} min`;
  if (size >= second) return `${compact(ms / second)} s`;
  if (size >= 1 || ms === 0) return `${compact(ms)} ms`;
  if (size >= 1e-4) return `${compact(ms * 1000)} µs`;
  return `${compact(ms * 1e6)} ns`;
}

export const seconds = (s: number): string => milliseconds(s * 1000);

export function bytes(count: number): string {
  if (count >= 1e12) return `${compact(count / 1e12)} TB`;
  if (count >= 1e9) return `${compact(count / 1e9)} GB`;
  return `${compact(count / 1e6)} MB`;
}

export function joules(value: number): string {
  for (const [size, unit] of [[1, 'J'], [1e-3, 'mJ'], [1e-6, 'µJ'], [1e-9, 'nJ']] as const) {
    if (Math.abs(value) >= size) return `${compact(value / size)} ${unit}`;
  }
  return `${compact(value * 1e12)} pJ`;
}

export const percent = (share: number): string => `${compact(100 * share)}%`;

export function parameters(count: number): string {
  if (count >= 1e9) return `${compact(count / 1e9)} B`;
  return `${compact(count / 1e6)} M`;
}

export function dollars(value: number): string {
  return `$${value >= 100 ? compact(value) : value.toFixed(2)}`;
}

// What changed from a to b: "1.9 times faster" where less is better.
export function speed(before: number, after: number): string {
  if (Math.abs(after / before - 1) < 0.005) return 'as fast';
  return after < before ? `${compact(before / after)} times faster` : `${compact(after / before)} times slower`;
}

export const shortName = (id: string): string => id.slice(id.indexOf('/') + 1);
export const words = (id: string): string => id.replaceAll('_', ' ');
