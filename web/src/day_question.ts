// A day of traffic as flags: the day is as long as the server simulates of the rate.
import type { Facts, Fields } from './api';

const day = 86_400;

export function dayPeriod(facts: Facts, rate: number): number {
  const mostRequests = facts.fields.serve?.num_prompts?.most ?? 20_000;
  return Math.min(day, Math.floor(mostRequests / Math.max(0.01, rate) / 60) * 60);
}
export const isWholeDay = (period: number): boolean => period === day;

export function dayTraffic(rate: number, input: number, output: number, swing: number, period: number): Fields {
  return { request_rate: rate, num_prompts: Math.max(1, Math.round(rate * period)), random_input_len: input, random_output_len: output, random_range_ratio: 0.5,
    max_model_len: Math.max(2048, Math.ceil(1.5 * (input + output) / 256) * 256), ramp_up_strategy: 'daily', daily_swing: swing, daily_period: period };
}
