// The command of a layout that a search has simulated.
import assert from 'node:assert/strict';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const source = join(dirname(fileURLToPath(import.meta.url)), '../src/plan_command.ts');
const { outputFiles } = await build({ entryPoints: [source], bundle: true, format: 'esm', write: false });
const { commandOf, plannedModelLen } = await import(`data:text/javascript,${encodeURIComponent(outputFiles[0].text)}`);

const question = { model: 'Llama-3.1-8B', random_input_len: 1024, random_output_len: 256 };
const one = 'h100_sxm/vllm/fp8/kv-fp8/tp2/pp1/dp1/x4/seqs64/tokens0';

test('the limits of separate pools are those of each pool', () => {
  const command = commandOf('prefill:h100_sxm/vllm/config/kv-bf16/tp2/pp1/dp1/x1/seqs0/tokens0+decode:h100_sxm/vllm/config/kv-bf16/tp4/pp1/dp1/x2/seqs64/tokens8192', 5, question);
  assert.match(command, / --prefill-pool count=1,tp=2 --decode-pool count=2,tp=4,max-num-seqs=64,max-num-batched-tokens=8192 /);
  assert.doesNotMatch(command, /--max-num/);
  assert.match(commandOf(one, 5, question), / --tensor-parallel-size 2 --replicas 4 --max-num-seqs 64 --request-rate 5 /);
});

test('the format of the cache is always written, and TensorRT-LLM is told to cut prompts', () => {
  const command = commandOf('b200_sxm/trtllm/config/kv-bf16/tp2/pp1/dp1/x1/seqs0/tokens0', 5, question);
  assert.match(command, / --engine trtllm --kv-cache-dtype bf16 --tensor-parallel-size 2 --enable-chunked-prefill --request-rate 5 /);
  assert.match(commandOf('b200_sxm/trtllm-1.0/config/kv-fp8/tp1/pp1/dp1/x1/seqs0/tokens0', 5, question), / --enable-chunked-prefill /);
  assert.match(commandOf('h100_sxm/vllm/config/kv-bf16/tp1/pp1/dp1/x1/seqs0/tokens0', 5, question), / --kv-cache-dtype bf16 /);
  assert.doesNotMatch(commandOf(one, 5, question), /chunked-prefill/);
});

test('engines are set up for what was searched, unless the question says otherwise', () => {
  assert.match(commandOf(one, 5, question, 2048), / --max-model-len 2048$/);
  assert.match(commandOf(one, 5, { ...question, max_model_len: 4096 }, 2048), / --max-model-len 4096$/);
  assert.doesNotMatch(commandOf(one, 5, question), /--max-model-len/);
  assert.match(commandOf(one, 5, { ...question, gpu_memory_utilization: 0.8 }), / --gpu-memory-utilization 0\.8$/);
});

test('rates are written as the program reads them', () => {
  assert.match(commandOf(one, 1234.5, question), / --request-rate 1230 /);
  assert.match(commandOf(one, 0.123456, question), / --request-rate 0\.123 /);
});

test('the longest sequence is read from the lines of every engine', () => {
  const of = (line) => plannedModelLen([{ line: 'vllm-router --port 8000' }, { line }]);
  assert.equal(of('vllm serve m --tensor-parallel-size 2 --max-model-len 2048'), 2048);
  assert.equal(of('python -m sglang.launch_server --model-path m --context-length 4096 --tp-size 2'), 4096);
  assert.equal(of('trtllm-serve m --max-seq-len 8192'), 8192);
  assert.equal(of('trtllm-serve m --max_seq_len 8192'), 8192);
  assert.equal(of('other'), undefined);
});
