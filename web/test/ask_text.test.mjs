// Questions in words.
import assert from 'node:assert/strict';
import { readFileSync, readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const here = dirname(fileURLToPath(import.meta.url));
const { outputFiles } = await build({ entryPoints: [join(here, '../src/ask_text.ts')], bundle: true, format: 'esm', write: false });
const { understand } = await import(`data:text/javascript,${encodeURIComponent(outputFiles[0].text)}`);

const devices = join(here, '../../data/hardware/devices');
const model = (name, weights, aliases = []) => ({ name, aliases, weight_bytes: weights * 1e9, scheme: 'bf16', max_positions: 131072 });
const facts = {
  devices: readdirSync(devices).filter((name) => name.endsWith('.json')).map((name) => ({ file: JSON.parse(readFileSync(join(devices, name), 'utf8')), units: {}, engines: ['vllm'] })),
  models: [model('meta-llama/Llama-2-70b-hf', 138), model('meta-llama/Llama-3.1-70B', 141), model('meta-llama/Llama-3.1-8B', 16), model('meta-llama/Llama-3.3-70B-Instruct', 141),
    model('deepseek-ai/DeepSeek-R1', 689, ['deepseek-ai/DeepSeek-R1-0528']), model('Qwen/Qwen3-32B', 65)],
  clusters: ['a100_ib_rail', 'h100_ib_rail'],
};
const asked = (text) => understand(text, facts).question;

test('a model, hardware and a rate are read', () => {
  const { question, ignored } = understand('llama 70b on 8 h100, 5 req/s', facts);
  assert.deepEqual(ignored, []);
  assert.deepEqual([question.command, question.model, question.device, question.request_rate], ['serve', 'Llama-3.1-70B', 'h100_sxm', 5]);
  assert.equal(question.tensor_parallel_size * (question.replicas ?? 1), 8);
  assert.equal(asked('llama 70b on 8x h100 at 5 rps').replicas, question.replicas);
  assert.equal(asked('Llama-3.1-8B on 8xH100').device, 'h100_sxm');
});

test('exact names, formats, lengths, goals and engines are read', () => {
  const question = asked('Qwen3-32B fp8 on 2 l40s with sglang, 64 users, 2k/500, ttft < 1s, tpot < 40 ms');
  assert.deepEqual([question.model, question.quantization, question.device, question.engine, question.max_concurrency], ['Qwen3-32B', 'fp8', 'l40s', 'sglang', 64]);
  assert.deepEqual([question.random_input_len, question.random_output_len, question.goodput], [2000, 500, ['ttft:1000', 'tpot:40']]);
});

test('R1, searches and training are told apart', () => {
  assert.deepEqual([asked('r1 on 8 h200').model, asked('r1 on 8 h200').tensor_parallel_size], ['DeepSeek-R1', 8]);
  assert.deepEqual([asked('best layout for llama 8b on 4 a100').command, asked('best layout for llama 8b on 4 a100').hardware], ['plan serve', 'a100_sxm:4']);
  const train = asked('train llama 70b on 256 h100');
  assert.deepEqual([train.command, train.cluster, train.devices], ['plan train', 'h100_ib_rail', 256]);
  const lora = asked('qlora llama 8b on 8 rtx 4090');
  assert.deepEqual([lora.command, lora.device, lora.devices, lora.base_weights], ['train', 'rtx_4090', 8, 'nf4']);
});

test('what is missing is asked for, and what is not understood is told', () => {
  assert.match(understand('on 8 h100', facts).problem, /Name a model/);
  assert.match(understand('llama 70b', facts).problem, /Name the hardware/);
  assert.deepEqual(understand('llama 8b on h100 purple', facts).ignored, ['purple']);
});
