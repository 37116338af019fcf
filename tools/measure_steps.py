#!/usr/bin/env python3
"""Times whole model steps on one CUDA GPU; writes the CSV that `foretoken validate steps` reads.

Needs Python 3.8+, PyTorch with CUDA and transformers. Models come from config files (foretoken's data/models or a
plain config.json) with random weights: only shapes matter for time. Two stacks:

hf-eager     transformers modelling code, SDPA attention, one Python call per operator.
torch-graph  the same layers written out: one GEMM each for QKV and gate-up, one compiled kernel each for add + norm,
             rotary embedding and gated activation, SDPA attention, KV copy, head on the last position, arg-max;
             captured in one CUDA graph.

A row's `measured_ms` is the wall time from the call to the end of the device's work, on a cool board at full clock:
the fastest for eager steps, as other work on the host can only add to it, else the median; `median_ms` the median of
both; `kernel_ms` the sum of its kernels from the profiler; `sustained_ms` and `power_w` the time of a step and the
board's power after the step has been repeated for some seconds. Finished rows are on disk at once, and a run that was
stopped goes on where it ended.
"""
import argparse
import csv
import gc
import gzip
import json
import pathlib
import statistics
import subprocess
import sys
import threading
import time

try:
    import torch
    import torch.nn.functional as F
except ImportError:
    torch = None

COLUMNS = ["device", "model", "stack", "dispatch", "phase", "batch", "input_len", "context_len", "dtype",
           "measured_ms", "kernel_ms", "kernels", "host_ms", "cache", "optimizer", "logits", "sustained_ms", "power_w",
           "median_ms"]
KEY = COLUMNS[:9] + ["cache", "optimizer", "logits"]

# ---------------------------------------------------------------------------------------------------------------------
# The plan


def row(model, stack, phase, batch, input_len, context_len=0, **more):
    result = dict(model=model, stack=stack, dispatch="graph" if stack == "torch-graph" else "eager", phase=phase,
                  batch=batch, input_len=input_len, context_len=context_len, dtype="bf16", cache="", optimizer="",
                  logits="last", sustained=False)
    if stack == "hf-eager" and phase == "decode":
        result["cache"] = "dynamic"
    if phase == "train":
        result.update(optimizer="adamw_fused", logits="all")
    result.update(more)
    return result


PREFILL = [(1, 128), (1, 512), (1, 2048), (4, 1024), (1, 8192), (8, 256)]
DECODE = [(1, 512), (8, 1024), (32, 2048), (64, 512), (128, 1024), (4, 8192)]
TRAIN = [(1, 512), (2, 1024), (4, 2048), (1, 2048)]


def plan(models, quick):
    rows = []
    for at, model in enumerate(models):
        shift = at % 3
        prefill = PREFILL if at < 2 else PREFILL[shift:shift + 4]
        decode = DECODE if at < 2 else DECODE[shift:shift + 4]
        train = TRAIN if at < 2 else TRAIN[shift % 2:shift % 2 + 2]
        short = "gpt2" in model or "opt" in model  # learned positions end at 1024 or 2048
        for batch, length in prefill:
            length = min(length, 1024) if short else length
            rows.append(row(model, "torch-graph", "prefill", batch, length, sustained=at < 2))
            rows.append(row(model, "hf-eager", "prefill", batch, length, sustained=True))
        if at == 0:
            rows.append(row(model, "hf-eager", "prefill", 1, 128, logits="all"))
            rows.append(row(model, "hf-eager", "prefill", 1, 2048, logits="all"))
        for batch, length in decode:
            length = min(length, 1000) if short else length
            rows.append(row(model, "torch-graph", "decode", batch, 1, length, sustained=at < 2))
            rows.append(row(model, "hf-eager", "decode", batch, 1, length))
            # A static cache fills up while it is timed: leave it room below the last position.
            rows.append(row(model, "hf-eager", "decode", batch, 1, min(length, 900) if short else length, cache="static"))
        for batch, length in train:
            length = min(length, 1024) if short else length
            rows.append(row(model, "hf-eager", "train", batch, length, sustained=True,
                            **({"optimizer": "none"} if "MoE" in model else {})))
        if at < 2:
            rows.append(row(model, "hf-eager", "train", *train[1], optimizer="none"))
            rows.append(row(model, "hf-eager", "train", *train[1], optimizer="adamw"))
            rows.append(row(model, "hf-eager", "train", *train[1], optimizer="adamw_fused", cache="recompute"))
    unique = {}
    for each in rows:
        unique.setdefault(tuple(each[name] for name in KEY if name != "device"), each)
    rows = sorted(unique.values(), key=lambda r: (models.index(r["model"]), r["stack"], r["phase"] == "train"))
    if quick:  # one of each kind
        rows = list({(r["model"], r["stack"], r["phase"]): r for r in reversed(rows)}.values())
    return rows


# ---------------------------------------------------------------------------------------------------------------------
# Models


def read_config(path):
    with open(path) as file:
        document = json.load(file)
    return document.get("config", document)


def find_config(folder, name):
    tail = name.split("/")[-1].lower()
    for path in sorted(pathlib.Path(folder).rglob("*.json")):
        if path.stem.split("--")[-1].lower() == tail:
            return path
    raise SystemExit(f"no config for '{name}' below {folder}")


def hf_model(config, layers=None):
    import transformers
    values = {key: value for key, value in config.items() if key not in ("model_type", "torch_dtype")}
    if layers:
        for key in ("num_hidden_layers", "n_layer"):
            if key in values:
                values[key] = layers
        values.pop("layer_types", None)
    made = transformers.AutoConfig.for_model(config["model_type"], **values)
    made._attn_implementation = "sdpa"
    with torch.device("cuda"):
        model = transformers.AutoModelForCausalLM.from_config(made, dtype=torch.bfloat16, attn_implementation="sdpa")
    randomise(model.parameters())
    return model


def randomise(tensors):
    with torch.no_grad():
        for tensor in tensors:
            tensor.normal_(0, 0.02)


class Written:
    """The torch-graph stack: one decoder in plain functions over fused weights."""

    def __init__(self, config, layers=None):
        kind = config["model_type"]
        get = config.get
        self.hidden = get("hidden_size") or get("n_embd")
        self.layers = layers or get("num_hidden_layers") or get("n_layer")
        self.heads = get("num_attention_heads") or get("n_head")
        self.kv_heads = get("num_key_value_heads") or self.heads
        self.head_dim = get("head_dim") or self.hidden // self.heads
        self.inter = get("intermediate_size") or get("ffn_dim") or get("n_inner") or 4 * self.hidden
        self.vocabulary = get("vocab_size")
        self.layer_norm = kind in ("gpt2", "opt")
        self.rotary = not self.layer_norm
        self.gated = not self.layer_norm
        self.biased = self.layer_norm
        self.qkv_bias = self.layer_norm or kind in ("qwen2", "qwen2_moe")
        self.query_norm = kind in ("qwen3", "qwen3_moe", "gemma3_text")
        self.sandwich = kind in ("gemma2", "gemma3_text")
        self.experts = get("num_experts") or get("num_local_experts") or 0
        self.top_k = get("num_experts_per_tok") or 0
        self.expert_inter = get("moe_intermediate_size") or self.inter
        self.device = torch.device("cuda")
        size = (self.heads + 2 * self.kv_heads) * self.head_dim
        empty = lambda *shape: torch.empty(*shape, device=self.device, dtype=torch.bfloat16).normal_(0, 0.02)
        self.embedding = empty(self.vocabulary, self.hidden)
        self.head = empty(self.vocabulary, self.hidden)
        self.positions = empty(get("n_positions") or get("max_position_embeddings") or 1024,
                               self.hidden) if self.layer_norm else None
        self.norms = [[empty(self.hidden) for _ in range(4 if self.sandwich else 2)] for _ in range(self.layers)]
        self.final_norm = empty(self.hidden)
        self.norm_bias = empty(self.hidden)
        self.query_norms = [(empty(self.head_dim), empty(self.head_dim)) for _ in range(self.layers)]
        self.qkv = [empty(size, self.hidden) for _ in range(self.layers)]
        self.out = [empty(self.hidden, self.heads * self.head_dim) for _ in range(self.layers)]
        self.bias = {n: empty(n) for n in {size, self.hidden, self.inter}}
        if self.experts:
            self.router = [empty(self.experts, self.hidden) for _ in range(self.layers)]
            self.up = [empty(self.experts, self.hidden, 2 * self.expert_inter) for _ in range(self.layers)]
            self.down = [empty(self.experts, self.expert_inter, self.hidden) for _ in range(self.layers)]
            shared = get("shared_expert_intermediate_size") or 0
            self.shared = [(empty(2 * shared, self.hidden), empty(self.hidden, shared), empty(1, self.hidden))
                           for _ in range(self.layers)] if shared else None
        else:
            self.up = [empty((2 if self.gated else 1) * self.inter, self.hidden) for _ in range(self.layers)]
            self.down = [empty(self.hidden, self.inter) for _ in range(self.layers)]
        self.cos = empty(131072, self.head_dim)
        self.compile()

    def compile(self):
        rms = lambda x, w: (x.float() * torch.rsqrt(x.float().pow(2).mean(-1, keepdim=True) + 1e-6)).to(x.dtype) * w

        def add_rms(x, residual, w):
            residual = residual + x
            return rms(residual, w), residual

        def add_layer_norm(x, residual, w, b):
            residual = residual + x
            return F.layer_norm(residual, residual.shape[-1:], w, b), residual

        def add_rms_twice(x, residual, w, v):  # norm of the block's output, add, norm for the next block
            residual = residual + rms(x, w)
            return rms(residual, v), residual

        def rope(q, k, cos, sin):
            def turn(x):
                half = x.shape[-1] // 2
                return torch.cat((-x[..., half:], x[..., :half]), -1)
            return q * cos + turn(q) * sin, k * cos + turn(k) * sin

        def norm_rope(q, k, qw, kw, cos, sin):
            return rope(rms(q, qw), rms(k, kw), cos, sin)

        def gate(x):
            a, b = x.chunk(2, -1)
            return F.silu(a) * b

        def add_gated(y, shared, gate):
            return y + shared * torch.sigmoid(gate)

        compiled = lambda function: torch.compile(function, dynamic=True)
        self.rms, self.add_rms, self.add_layer_norm = compiled(rms), compiled(add_rms), compiled(add_layer_norm)
        self.add_rms_twice = compiled(add_rms_twice)
        self.rope, self.norm_rope = compiled(rope), compiled(norm_rope)
        self.add_gated = compiled(add_gated)
        self.gate, self.gelu = compiled(gate), compiled(lambda x: F.gelu(x, approximate="tanh"))

    def norm(self, x, residual, layer, which):
        weights = self.norms[layer] if layer < self.layers else [self.final_norm]
        if self.layer_norm:
            return self.add_layer_norm(x, residual, weights[which], self.norm_bias)
        return self.add_rms(x, residual, weights[which])

    def attention(self, x, layer, batch, new, cache, start):
        bias = self.bias[self.qkv[layer].shape[0]] if self.qkv_bias else None
        qkv = F.linear(x, self.qkv[layer], bias).view(batch, new, -1, self.head_dim)
        q, k, v = qkv.split([self.heads, self.kv_heads, self.kv_heads], 2)
        if self.rotary:
            cos = self.cos[start:start + new].view(1, new, 1, self.head_dim)
            if self.query_norm:
                q, k = self.norm_rope(q, k, *self.query_norms[layer], cos, cos)
            else:
                q, k = self.rope(q, k, cos, cos)
        keys, values = cache[layer]
        keys[:, start:start + new].copy_(k)
        values[:, start:start + new].copy_(v)
        keys, values = keys[:, :start + new], values[:, :start + new]
        if start == 0:
            keys, values = k, v
        y = F.scaled_dot_product_attention(q.transpose(1, 2), keys.transpose(1, 2), values.transpose(1, 2),
                                           is_causal=new > 1, enable_gqa=self.kv_heads != self.heads)
        y = y.transpose(1, 2).reshape(batch * new, -1)
        return F.linear(y, self.out[layer], self.bias[self.hidden] if self.biased else None)

    def feed_forward(self, x, layer):
        if self.experts:
            return self.expert_mlp(x, layer)
        bias = lambda n: self.bias[n] if self.biased else None
        h = F.linear(x, self.up[layer], bias(self.inter))
        h = self.gate(h) if self.gated else self.gelu(h)
        return F.linear(h, self.down[layer], bias(self.hidden))

    def expert_mlp(self, x, layer):
        scores = F.linear(x, self.router[layer]).float().softmax(-1)
        weight, chosen = scores.topk(self.top_k, -1)
        order = chosen.view(-1).argsort()
        ends = torch.searchsorted(chosen.view(-1)[order], torch.arange(self.experts, device=x.device),
                                  right=True).to(torch.int32)
        rows = x[order // self.top_k]
        h = torch._grouped_mm(rows, self.up[layer], offs=ends)
        h = torch._grouped_mm(self.gate(h), self.down[layer], offs=ends)
        h = h * weight.view(-1)[order].to(h.dtype).unsqueeze(-1)
        y = torch.zeros_like(x).index_add_(0, order // self.top_k, h)
        if self.shared:
            up, down, gate = self.shared[layer]
            y = self.add_gated(y, F.linear(self.gate(F.linear(x, up)), down), F.linear(x, gate))
        return y

    def step(self, ids, cache, start):
        batch, new = ids.shape
        x = F.embedding(ids, self.embedding)
        if self.positions is not None:
            x = x + self.positions[start:start + new]
        residual = x.view(batch * new, -1)
        x = self.rms(residual, self.norms[0][0]) if not self.layer_norm else \
            F.layer_norm(residual, residual.shape[-1:], self.norms[0][0], self.norm_bias)
        for layer in range(self.layers):
            x = self.attention(x, layer, batch, new, cache, start)
            if self.sandwich:
                x, residual = self.add_rms_twice(x, residual, self.norms[layer][1], self.norms[layer][2])
                x = self.feed_forward(x, layer)
                after = self.norms[layer + 1][0] if layer + 1 < self.layers else self.final_norm
                x, residual = self.add_rms_twice(x, residual, self.norms[layer][3], after)
                continue
            x, residual = self.norm(x, residual, layer, 1)
            x = self.feed_forward(x, layer)
            x, residual = self.norm(x, residual, layer + 1, 0)
        last = x.view(batch, new, -1)[:, -1]
        return F.linear(last, self.head).argmax(-1)

    def make_cache(self, batch, length):
        return [[torch.randn(batch, length, self.kv_heads, self.head_dim, device=self.device, dtype=torch.bfloat16)
                 for _ in range(2)] for _ in range(self.layers)]


# ---------------------------------------------------------------------------------------------------------------------
# Steps: a callable and what to do before each call, outside of the timing


def token_ids(config, batch, length):
    generator = torch.Generator(device="cuda").manual_seed(1)
    return torch.randint(0, config["vocab_size"], (batch, length), device="cuda", generator=generator)


def eager_step(model, config, spec):
    import transformers
    batch, new, context = spec["batch"], spec["input_len"], spec["context_len"]
    ids = token_ids(config, batch, new)
    if spec["phase"] == "train":
        model.train()
        kind = spec["optimizer"]
        optimizer = None
        if kind != "none":
            optimizer = torch.optim.AdamW(model.parameters(), lr=1e-6, fused=kind == "adamw_fused")
        if spec["cache"] == "recompute":
            model.gradient_checkpointing_enable()
        else:
            model.gradient_checkpointing_disable()

        def train():
            model(input_ids=ids, labels=ids, use_cache=False).loss.backward()
            if optimizer:
                optimizer.step()
                optimizer.zero_grad(set_to_none=True)
        before = (lambda: None) if optimizer else (lambda: model.zero_grad(set_to_none=True))
        return train, before
    model.eval()
    keep = 1 if spec["logits"] == "last" else 0
    if spec["phase"] == "prefill":
        def prefill():
            with torch.inference_mode():
                return model(input_ids=ids, use_cache=True, logits_to_keep=keep).logits[:, -1].argmax(-1)
        return prefill, lambda: None
    if spec["cache"] == "static":
        cache = transformers.StaticCache(config=model.config, max_cache_len=context + 64)
    else:
        cache = transformers.DynamicCache(config=model.config)
    with torch.inference_mode():  # fill it piece by piece: one long prompt would need much memory
        piece = max(1, min(context, 65536 // batch))
        at = 0
        while at < context:
            count = min(piece, context - at)
            model(input_ids=token_ids(config, batch, count), past_key_values=cache, use_cache=True, logits_to_keep=1,
                  cache_position=torch.arange(at, at + count, device="cuda"))
            at += count
    position = torch.tensor([context], device="cuda")

    def decode():
        with torch.inference_mode():
            return model(input_ids=ids, past_key_values=cache, use_cache=True, logits_to_keep=1,
                         cache_position=position).logits[:, -1].argmax(-1)

    def back():
        if spec["cache"] != "static":
            cache.crop(context)
    return decode, back


def graph_step(model, config, spec):
    batch, new, context = spec["batch"], spec["input_len"], spec["context_len"]
    ids = token_ids(config, batch, new)
    cache = model.make_cache(batch, context + new)
    call = lambda: model.step(ids, cache, context)
    with torch.inference_mode():
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(2):
                call()
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            keep = call()

    def replay():
        graph.replay()
        return keep
    replay.held = (graph, cache, keep)
    return replay, lambda: None


# ---------------------------------------------------------------------------------------------------------------------
# Timing


def timed(step, before, seconds, patience, most):
    """At most `most` samples of (wall ms, host ms). Goes on for `patience` seconds while the step waits for the host: other work on a
    shared host slows it up to twice for seconds at a time."""
    samples = []
    began = time.perf_counter()
    while True:
        spent = time.perf_counter() - began
        waits = samples and statistics.median(host / wall for wall, host in samples) > 0.7
        if len(samples) == most or (len(samples) >= 3 and spent > (patience if waits else seconds)):
            return samples
        before()
        torch.cuda.synchronize()
        start = time.perf_counter()
        step()
        host = time.perf_counter()
        torch.cuda.synchronize()
        end = time.perf_counter()
        samples.append(((end - start) * 1e3, (host - start) * 1e3))
        if not waits:
            time.sleep(min(0.3, 1.0 * (end - start)))  # let the board cool


def profiled(step, before, trace=None):
    from torch.profiler import ProfilerActivity, profile
    before()
    torch.cuda.synchronize()
    activities = [ProfilerActivity.CUDA] + ([ProfilerActivity.CPU] if trace else [])
    with profile(activities=activities, record_shapes=bool(trace)) as result:
        step()
        torch.cuda.synchronize()
    if trace:
        result.export_chrome_trace(str(trace))
    total, count, names = 0.0, 0, {}
    for event in result.events():
        if event.device_type == torch.autograd.DeviceType.CUDA:
            total += event.time_range.elapsed_us()
            count += 1
            entry = names.setdefault(event.name, [0, 0.0])
            entry[0] += 1
            entry[1] += event.time_range.elapsed_us()
    return total / 1e3, count, names


class PowerMeter:
    """Board power once in 50 ms, from nvidia-smi or NVML."""

    def __init__(self):
        self.samples, self.stop = [], threading.Event()
        self.thread = threading.Thread(target=self.watch, daemon=True)

    def watch(self):
        process = subprocess.Popen(["nvidia-smi", "--query-gpu=power.draw.instant", "--format=csv,noheader,nounits",
                                    "-lms", "100"], stdout=subprocess.PIPE, text=True)
        while not self.stop.is_set():
            line = process.stdout.readline()
            if not line:
                break
            try:
                self.samples.append((time.perf_counter(), float(line)))
            except ValueError:
                pass
        process.kill()

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stop.set()
        self.thread.join(2)

    def mean_since(self, start):
        values = [watts for at, watts in self.samples if at >= start]
        return statistics.mean(values) if values else 0


def sustained(step, before, seconds):
    """Milliseconds of a step and watts over the second half of a busy stretch."""
    with PowerMeter() as meter:
        begin = time.perf_counter()
        half = None
        steps = 0
        while True:
            before()
            step()
            if steps % 4 == 3:
                torch.cuda.synchronize()
            now = time.perf_counter()
            if half is None and now - begin > seconds / 2:
                torch.cuda.synchronize()
                half, steps = time.perf_counter(), 0
                continue
            steps += 1
            if now - begin > seconds:
                break
        torch.cuda.synchronize()
        end = time.perf_counter()
        return (end - half) * 1e3 / steps, meter.mean_since(half)


def read_rows(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def write_rows(path, rows):
    with open(path, "w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def run_rows(rows, configs, action, late):
    """Makes each row's model and step, warms it up and calls action(spec, step, before), which says what it found."""
    held, made = None, None
    for at, spec in enumerate(rows):
        if late():
            print("measure_steps: out of time; run again to go on", file=sys.stderr)
            break
        name = f"{at + 1}/{len(rows)} {spec['model']} {spec['stack']} {spec['phase']}"
        try:
            config = read_config(find_config(configs, spec["model"]))
            if held != (spec["model"], spec["stack"]):
                made = None
                gc.collect()
                torch.cuda.empty_cache()
                torch._dynamo.reset()
                made = hf_model(config) if spec["stack"] == "hf-eager" else Written(config)
                held = (spec["model"], spec["stack"])
            step, before = (eager_step if spec["stack"] == "hf-eager" else graph_step)(made, config, spec)
            for _ in range(3):
                before()
                step()
            torch.cuda.synchronize()
            found = action(spec, step, before)
            print(f"{name} {spec['batch']}x{spec['input_len']}+{spec['context_len']} {spec['optimizer']}"
                  f"{spec['cache']}: {found}", file=sys.stderr, flush=True)
        except Exception as error:  # one row must not stop the rest
            print(f"{name}: {type(error).__name__}: {str(error)[:300]}", file=sys.stderr, flush=True)
        step = before = None
        if made is not None and spec["stack"] == "hf-eager":
            made.zero_grad(set_to_none=True)
        gc.collect()
        torch.cuda.empty_cache()


# ---------------------------------------------------------------------------------------------------------------------


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", default="meta-llama/Llama-3.1-8B,Qwen/Qwen3-8B,google/gemma-2-9b,"
                        "openai-community/gpt2-large,Qwen/Qwen1.5-MoE-A2.7B", help="comma-separated names")
    parser.add_argument("--configs", default=str(pathlib.Path(__file__).resolve().parent.parent / "data" / "models"),
                        help="folder of config files; default: foretoken's data/models")
    parser.add_argument("--device-name", default="", help="what to call the device; default: from its name")
    parser.add_argument("--out", default="measured_steps", help="folder for steps.csv, step_kernels.csv.gz, meta.json")
    parser.add_argument("--seconds", type=float, default=0.6, help="timing per row")
    parser.add_argument("--patience", type=float, default=6, help="timing per row that waits for the host")
    parser.add_argument("--sustained-seconds", type=float, default=3.0)
    parser.add_argument("--minutes", type=float, default=60, help="start no further row after this long")
    parser.add_argument("--traces", action="store_true", help="also write profiler traces of two-layer models")
    parser.add_argument("--stacks", default="torch-graph,hf-eager")
    parser.add_argument("--phases", default="prefill,decode,train")
    parser.add_argument("--no-profile", action="store_true", help="leave out the kernels' sum")
    parser.add_argument("--plan", action="store_true", help="print the rows and stop")
    parser.add_argument("--quick", action="store_true", help="a few rows only")
    arguments = parser.parse_args()
    models = arguments.models.split(",")
    rows = [r for r in plan(models, arguments.quick)
            if r["stack"] in arguments.stacks.split(",") and r["phase"] in arguments.phases.split(",")]
    if arguments.plan:
        for each in rows:
            print(" ".join(f"{key}={value}" for key, value in each.items() if value not in ("", False)))
        print(f"{len(rows)} rows, about {len(rows) * (arguments.seconds + 2) / 60:.0f} minutes")
        return 0
    if torch is None or not torch.cuda.is_available():
        print("measure_steps: needs PyTorch with a CUDA GPU", file=sys.stderr)
        return 2
    out = pathlib.Path(arguments.out)
    out.mkdir(parents=True, exist_ok=True)
    name = torch.cuda.get_device_name()
    device = arguments.device_name or {"NVIDIA H200": "h200_sxm"}.get(name, name.lower().replace(" ", "_"))
    import transformers
    meta = {"device": name, "torch": torch.__version__, "transformers": transformers.__version__,
            "cuda": torch.version.cuda, "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())}
    (out / "steps_meta.json").write_text(json.dumps(meta, indent=2) + "\n")
    path = out / "steps.csv"
    if not path.exists():
        write_rows(path, [])
    began = time.perf_counter()
    late = lambda: time.perf_counter() - began > arguments.minutes * 60
    rows = [dict(spec, device=device) for spec in rows]
    key_of = lambda spec: tuple(str(spec[key]) for key in KEY)

    def time_row(spec, step, before):
        most = 40 if spec["cache"] == "static" else 1000  # a static cache fills up, step by step
        samples = timed(step, before, arguments.seconds, arguments.patience, most)
        median, fastest = statistics.median(wall for wall, _ in samples), min(samples)
        wall, host = fastest if spec["dispatch"] == "eager" else (median, fastest[1])
        spec.update(measured_ms=f"{wall:.5g}", host_ms=f"{host:.5g}", median_ms=f"{median:.5g}")
        if spec["sustained"]:
            ms, watts = sustained(step, before, arguments.sustained_seconds)
            spec.update(sustained_ms=f"{ms:.5g}", power_w=f"{watts:.4g}")
        with open(path, "a", newline="") as file:
            csv.writer(file, lineterminator="\n").writerow([spec.get(key, "") for key in COLUMNS])
        return f"{wall:.3f} ms"

    # A process that has profiled once launches kernels 1.3 times slower from then on: all timing comes first.
    done = {key_of(r) for r in read_rows(path)}
    run_rows([spec for spec in rows if key_of(spec) not in done], arguments.configs, time_row, late)
    if arguments.no_profile:
        print(f"measure_steps: {time.perf_counter() - began:.0f} s, {path}", file=sys.stderr)
        return 0

    with gzip.open(out / "step_kernels.csv.gz", "at", newline="") as kernels:
        def profile_row(spec, step, before):
            kernel_ms, count, names = profiled(step, before)
            for kernel, (calls, us) in sorted(names.items(), key=lambda item: -item[1][1]):
                csv.writer(kernels).writerow([spec["model"], spec["stack"], spec["phase"], spec["batch"],
                                              spec["input_len"], spec["context_len"], spec["optimizer"], spec["cache"],
                                              calls, f"{us:.5g}", kernel[:160]])
            kernels.flush()
            write_rows(path, [dict(r, kernel_ms=f"{kernel_ms:.5g}", kernels=count) if key_of(r) == key_of(spec) else r
                              for r in read_rows(path)])
            return f"kernels {kernel_ms:.3f} ms ({count})"

        unprofiled = {key_of(r) for r in read_rows(path) if not r["kernel_ms"]}
        run_rows([spec for spec in rows if key_of(spec) in unprofiled], arguments.configs, profile_row, late)
    if arguments.traces:
        made = None
        gc.collect()
        torch.cuda.empty_cache()
        for model in models:
            config = read_config(find_config(arguments.configs, model))
            for stack in arguments.stacks.split(","):
                try:
                    made = hf_model(config, 2) if stack == "hf-eager" else Written(config, 2)
                except Exception as error:
                    print(f"trace {model} {stack}: {error}", file=sys.stderr)
                    continue
                for phase, batch, new, context in (("prefill", 2, 512, 0), ("decode", 8, 1, 512), ("train", 2, 512, 0)):
                    if stack == "torch-graph" and phase == "train":
                        continue
                    try:
                        spec = row(model, stack, phase, batch, new, context)
                        if stack == "hf-eager":
                            step, before = eager_step(made, config, spec)
                        else:
                            ids, cache = token_ids(config, batch, new), made.make_cache(batch, context + new)
                            step, before = (lambda: made.step(ids, cache, context)), (lambda: None)
                        with torch.set_grad_enabled(phase == "train"):
                            for _ in range(3):
                                before()
                                step()
                            tail = model.split("/")[-1].replace("/", "-")
                            file = out / f"trace_{tail}_{stack}_{phase}.json"
                            profiled(step, before, file)
                    except Exception as error:
                        print(f"trace {model} {stack} {phase}: {error}", file=sys.stderr)
    print(f"measure_steps: {time.perf_counter() - began:.0f} s, {path}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
