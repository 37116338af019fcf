// Numbers as the page writes them.
import assert from 'node:assert/strict';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const source = join(dirname(fileURLToPath(import.meta.url)), '../src/format.ts');
const { outputFiles } = await build({ entryPoints: [source], bundle: true, format: 'esm', write: false });
const { milliseconds, seconds } = await import(`data:text/javascript,${encodeURIComponent(outputFiles[0].text)}`);

test('times are told in a unit that suits them, whatever their sign', () => {
  assert.equal(seconds(-1e-10), '-0.1 ns');
  assert.equal(seconds(2.5e-8), '25 ns');
  assert.equal(seconds(-3e-6), '-3 µs');
  assert.equal(seconds(0), '0 ms');
  assert.equal(milliseconds(12.34), '12.3 ms');
  assert.equal(milliseconds(-20_000), '-20 s');
  assert.equal(milliseconds(8507), '8.51 s');
  assert.equal(milliseconds(0.163), '163 µs');
  assert.equal(seconds(1200), '20 min');
  assert.equal(seconds(3 * 3600), '3 h');
  assert.equal(seconds(1_403_785), '16.2 days');
});
