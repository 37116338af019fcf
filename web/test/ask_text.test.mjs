// Questions in words.
import assert from 'node:assert/strict';
import { readFileSync, readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const here = dirname(fileURLToPath(import.meta.url));
const { outputFiles } = await build({ entryPoints: [join(here, '../src/ask_text.ts')], bundle: true, format: 'esm', write: false });
const { phrases, understand } = await import(`data:text/javascript,${encodeURIComponent(outputFiles[0].text)}`);

const devices = join(here, '../../data/hardware/devices');
const model = (name, weights, aliases = []) => ({ name, aliases, weight_bytes: weights * 1e9, scheme: 'bf16', max_positions: 131072 });
const facts = {
  devices: readdirSync(devices).filter((name) => name.endsWith('.json')).map((name) => ({ file: JSON.parse(readFileSync(join(devices, name), 'utf8')), units: {}, engines: ['vllm'] })),
  models: [model('meta-llama/Llama-2-70b-hf', 138), model('meta-llama/Llama-3.1-70B', 141), model('meta-llama/Llama-3.1-8B', 16), model('meta-llama/Llama-3.3-70B-Instruct', 141),
    model('deepseek-ai/DeepSeek-R1', 689, ['deepseek-ai/DeepSeek-R1-0528']), model('Qwen/Qwen3-32B', 65)],
  clusters: ['a100_ib_rail', 'h100_96gb_roce', 'h100_ib_rail'],
  designs: [{ name: 'eyeriss_v1' }, { name: 'nvdla_large' }, { name: 'tpu_v4' }], networks: ['bert_base', 'resnet50'],
  fields: { serve: { num_prompts: { most: 500_000 }, autoscaler: { choices: ['none', 'reactive', 'seasonal'] } }, collective: { op: { choices: ['all_reduce', 'all_gather', 'alltoall'] } } },
  kernels: [{ name: 'gemm', parameters: [{ name: 'dtype', choices: ['bf16', 'fp8', 'fp8_block'], usual: 'bf16' }, ...['m', 'n', 'k'].map((name) => ({ name, whole: true, example: '4096' })),
    { name: 'batch', whole: true, usual: '1' }] },
  { name: 'attention_decode', parameters: ['batch', 'heads', 'kv_heads', 'kv_len'].map((name) => ({ name, whole: true, example: '8' })) },
  { name: 'moe', parameters: [{ name: 'tokens', whole: true, example: '8' }] }, { name: 'softmax', parameters: ['rows', 'width'].map((name) => ({ name, whole: true, example: '64' })) }],
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
  assert.deepEqual(understand('best layout for llama 8b on 4 a100', facts).ignored, []);
  assert.deepEqual([asked('best layout for llama 8b on 4 a100').command, asked('best layout for llama 8b on 4 a100').hardware], ['plan serve', 'a100_sxm:4']);
  const train = asked('train llama 70b on 256 h100');
  assert.deepEqual([train.command, train.cluster, train.devices], ['plan train', 'h100_ib_rail', 256]);
  const lora = asked('qlora llama 8b on 8 rtx 4090');
  assert.deepEqual([lora.command, lora.device, lora.devices, lora.base_weights], ['train', 'rtx_4090', 8, 'nf4']);
});

test('kernels are read, with sizes in their order or by name', () => {
  const { question, ignored } = understand('gemm 4096 x 4096 x 8192 bf16 on h200', facts);
  assert.deepEqual([question, ignored], [{ command: 'kernel gemm', device: 'h200_sxm', m: '4096', n: '4096', k: '8192', dtype: 'bf16' }, []]);
  assert.deepEqual(asked('fp8_block matmul 64x512x1024 on h100'), { command: 'kernel gemm', device: 'h100_sxm', m: '64', n: '512', k: '1024', dtype: 'fp8_block' });
  assert.deepEqual(asked('gemm m=7 n=8 k=9 batch 3 on a100'), { command: 'kernel gemm', device: 'a100_sxm', m: '7', n: '8', k: '9', batch: '3' });
  assert.deepEqual(asked('decode attention kv len 32768, batch 64, heads 32, kv heads 8 on h100'),
    { command: 'kernel attention_decode', device: 'h100_sxm', batch: '64', heads: '32', kv_heads: '8', kv_len: '32768' });
  assert.equal(asked('softmax 4096 x 32000 on l40s').width, '32000');
  assert.deepEqual([asked('moe kernel tokens=9 on h100').tokens, understand('qwen3 32b moe on h100', facts).question.command], ['9', 'serve']);
  assert.match(understand('gemm 1 x 2 x 3', facts).problem, /Name the hardware/);
});

test('a day of traffic is read', () => {
  const { question, ignored } = understand('chat over a day with llama 8b on 8 h100, 16 req/s, swing 60%', facts);
  assert.deepEqual(ignored, []);
  assert.deepEqual([question.command, question.model, question.ramp_up_strategy, question.daily_swing, question.request_rate], ['serve', 'Llama-3.1-8B', 'daily', 0.6, 16]);
  assert.deepEqual([question.autoscaler, question.max_replicas, question.daily_period * 16], ['reactive', 8, question.num_prompts]);
  assert.equal(asked('llama 70b on h100 autoscaled seasonal up to 4 replicas, 2 rps').autoscaler, 'seasonal');
  assert.equal(asked('llama 70b on h100 autoscaled, up to 4 replicas, 2 rps').max_replicas, 4);
});

test('chips and collectives are read', () => {
  assert.deepEqual(asked('resnet50 on eyeriss'), { command: 'accel', arch: 'eyeriss_v1', network: 'resnet50' });
  assert.deepEqual(asked('gemm 512x768x1024 on tpu v4'), { command: 'accel', arch: 'tpu_v4', gemm: '512x768x1024' });
  assert.deepEqual(asked('llama 8b prefill on nvdla'), { command: 'accel', arch: 'nvdla_large', model: 'Llama-3.1-8B', phase: 'prefill' });
  assert.match(understand('resnet50 on h100', facts).problem, /ONNX/);
  assert.deepEqual(asked('all-reduce on 16 h100'), { command: 'collective', cluster: 'h100_ib_rail', op: 'all_reduce', sizes: '1K:4G', ranks: 16 });
  assert.equal(asked('1 GB all to all on a100_ib_rail').op, 'alltoall');
});

test('training phrases are read', () => {
  const given = asked('pretrain llama 70b on 1.5T tokens with 256 h100, tp 8, pp 4, seq 8k, global batch 1024, fp8');
  assert.deepEqual([given.command, given.tensor_parallel_size, given.pipeline_parallel_size, given.seq_length, given.global_batch_size, given.train_tokens, given.precision],
    ['train', 8, 4, 8192, 1024, 1.5e12, 'fp8']);
  const found = understand('train llama 8b on 64 h100 for 1T tokens', facts);
  assert.equal(found.question.command, 'plan train');
  assert.match(found.ignored.join(), /1t tokens/);
  const lora = asked('lora fine-tuning llama 8b on 4 rtx 4090, rank 64, 10m tokens, batch 32');
  assert.deepEqual([lora.command, lora.lora_rank, lora.train_tokens, lora.global_batch_size, lora.base_weights], ['train', 64, 1e7, 32, 'bf16']);
});

test('what is missing is asked for, and what is not understood is told', () => {
  assert.match(understand('on 8 h100', facts).problem, /Name a model/);
  assert.match(understand('llama 70b', facts).problem, /Name the hardware/);
  assert.deepEqual(understand('llama 8b on h100 purple', facts).ignored, ['purple']);
});

test('every phrase that the box offers is understood', () => {
  for (const phrase of phrases) {
    const { question, problem, ignored } = understand(phrase, facts);
    assert.ok(question, `${phrase}: ${problem}`);
    assert.deepEqual(ignored, [], phrase);
  }
});
