"""Times denoising steps and decoders of image models on one GPU, with random weights: eager and compiled, in a burst on a
cool board and held busy until the board's power limit governs.

    python3 tools/measure_images.py --device-name h200_sxm --models data/image_models --out image_steps.csv

The networks follow data/image_models/*.json: transformers over patches and text (FLUX.1, SD3) and a UNet (SDXL), and the
decoder of both. A row is one pass over `images` images with all passes of guidance. Blocks are compiled one by one, as
pipelines do to keep compilation short; attention is PyTorch's fused one.
"""
import argparse
import csv
import json
import pathlib
import statistics
import subprocess
import time

import torch
import torch.nn.functional as F
from torch import nn

torch.backends.cuda.matmul.allow_tf32 = True
torch._dynamo.config.recompile_limit = 64  # a UNet's blocks have many shapes
KIND = {"device": "cuda", "dtype": torch.bfloat16}


def attend(q, k, v, heads):
    batch, _, width = q.shape
    split = [x.view(batch, x.shape[1], heads, width // heads).transpose(1, 2) for x in (q, k, v)]
    return F.scaled_dot_product_attention(*split).transpose(1, 2).reshape(batch, -1, width)


def normed(x, heads, weight):
    """RMS norm of each head, as of queries and keys."""
    batch, length, width = x.shape
    return (F.rms_norm(x.view(batch, length, heads, width // heads), (width // heads,)) * weight).view(batch, length, width)


class Stream(nn.Module):
    def __init__(self, hidden, heads, ratio):
        super().__init__()
        self.heads = heads
        self.modulation = nn.Linear(hidden, 6 * hidden, **KIND)
        self.qkv = nn.Linear(hidden, 3 * hidden, **KIND)
        self.out = nn.Linear(hidden, hidden, **KIND)
        self.up = nn.Linear(hidden, ratio * hidden, **KIND)
        self.down = nn.Linear(ratio * hidden, hidden, **KIND)
        self.q_weight = nn.Parameter(torch.ones(hidden // heads, **KIND))
        self.k_weight = nn.Parameter(torch.ones(hidden // heads, **KIND))

    def enter(self, x, time_embedding):
        shift = self.modulation(F.silu(time_embedding))[:, None].chunk(6, dim=-1)
        q, k, v = self.qkv(F.layer_norm(x, x.shape[-1:]) * (1 + shift[1]) + shift[0]).chunk(3, dim=-1)
        return normed(q, self.heads, self.q_weight), normed(k, self.heads, self.k_weight), v, shift

    def leave(self, x, attended, shift):
        x = x + shift[2] * self.out(attended)
        inner = F.gelu(self.up(F.layer_norm(x, x.shape[-1:]) * (1 + shift[4]) + shift[3]), approximate="tanh")
        return x + shift[5] * self.down(inner)


class JointBlock(nn.Module):
    def __init__(self, hidden, heads, ratio):
        super().__init__()
        self.heads = heads
        self.picture, self.text = Stream(hidden, heads, ratio), Stream(hidden, heads, ratio)

    def forward(self, picture, text, time_embedding):
        q, k, v, shift = self.picture.enter(picture, time_embedding)
        tq, tk, tv, text_shift = self.text.enter(text, time_embedding)
        both = attend(torch.cat((tq, q), 1), torch.cat((tk, k), 1), torch.cat((tv, v), 1), self.heads)
        of_text, of_picture = both.split((text.shape[1], picture.shape[1]), dim=1)
        return self.picture.leave(picture, of_picture, shift), self.text.leave(text, of_text, text_shift)


class SingleBlock(nn.Module):
    def __init__(self, hidden, heads, ratio):
        super().__init__()
        self.heads, self.hidden, self.inner = heads, hidden, ratio * hidden
        self.modulation = nn.Linear(hidden, 3 * hidden, **KIND)
        self.enter = nn.Linear(hidden, (3 + ratio) * hidden, **KIND)
        self.leave = nn.Linear((1 + ratio) * hidden, hidden, **KIND)
        self.q_weight = nn.Parameter(torch.ones(hidden // heads, **KIND))
        self.k_weight = nn.Parameter(torch.ones(hidden // heads, **KIND))

    def forward(self, x, time_embedding):
        shift, scale, gate = self.modulation(F.silu(time_embedding))[:, None].chunk(3, dim=-1)
        q, k, v, inner = self.enter(F.layer_norm(x, x.shape[-1:]) * (1 + scale) + shift).split(
            (self.hidden, self.hidden, self.hidden, self.inner), dim=-1)
        attended = attend(normed(q, self.heads, self.q_weight), normed(k, self.heads, self.k_weight), v, self.heads)
        return x + gate * self.leave(torch.cat((attended, F.gelu(inner, approximate="tanh")), -1))


class Transformer(nn.Module):
    def __init__(self, model, compiled):
        super().__init__()
        net = model["transformer"]
        hidden, heads, ratio = net["hidden"], net["heads"], net.get("mlp_ratio", 4)
        self.values = net.get("patch", 2) ** 2 * net["latent_channels"]
        self.enter, self.leave = nn.Linear(self.values, hidden, **KIND), nn.Linear(hidden, self.values, **KIND)
        wrap = torch.compile if compiled else lambda block: block
        self.joint = nn.ModuleList(wrap(JointBlock(hidden, heads, ratio)) for _ in range(net["joint_layers"]))
        self.single = nn.ModuleList(wrap(SingleBlock(hidden, heads, ratio)) for _ in range(net["single_layers"]))
        self.hidden, self.text_tokens, self.patch = hidden, model["text_tokens"], net.get("patch", 2)

    def inputs(self, batch, side):
        points = (side // 8 // self.patch) ** 2
        return (torch.randn(batch, points, self.values, **KIND), torch.randn(batch, self.text_tokens, self.hidden, **KIND),
                torch.randn(batch, self.hidden, **KIND))

    def forward(self, latent, text, time_embedding):
        picture = self.enter(latent)
        for block in self.joint:
            picture, text = block(picture, text, time_embedding)
        if len(self.single):
            both = torch.cat((text, picture), 1)
            for block in self.single:
                both = block(both, time_embedding)
            picture = both[:, text.shape[1]:]
        return self.leave(F.layer_norm(picture, picture.shape[-1:]))


class Residual(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.norm1, self.norm2 = nn.GroupNorm(32, inputs, **KIND), nn.GroupNorm(32, outputs, **KIND)
        self.conv1, self.conv2 = nn.Conv2d(inputs, outputs, 3, padding=1, **KIND), nn.Conv2d(outputs, outputs, 3, padding=1, **KIND)
        self.around = nn.Conv2d(inputs, outputs, 1, **KIND) if inputs != outputs else nn.Identity()

    def forward(self, x):
        return self.around(x) + self.conv2(F.silu(self.norm2(self.conv1(F.silu(self.norm1(x))))))


class TextLayer(nn.Module):
    def __init__(self, channels, heads, text_width):
        super().__init__()
        self.heads = heads
        self.norms = nn.ModuleList(nn.LayerNorm(channels, **KIND) for _ in range(3))
        self.qkv, self.out = nn.Linear(channels, 3 * channels, bias=False, **KIND), nn.Linear(channels, channels, **KIND)
        self.q2, self.kv2 = nn.Linear(channels, channels, bias=False, **KIND), nn.Linear(text_width, 2 * channels, bias=False, **KIND)
        self.out2 = nn.Linear(channels, channels, **KIND)
        self.up, self.down = nn.Linear(channels, 8 * channels, **KIND), nn.Linear(4 * channels, channels, **KIND)

    def forward(self, x, text):
        x = x + self.out(attend(*self.qkv(self.norms[0](x)).chunk(3, dim=-1), self.heads))
        x = x + self.out2(attend(self.q2(self.norms[1](x)), *self.kv2(text).chunk(2, dim=-1), self.heads))
        inner, gate = self.up(self.norms[2](x)).chunk(2, dim=-1)
        return x + self.down(inner * F.gelu(gate))


class TextBlock(nn.Module):
    def __init__(self, channels, layers, head_dim, text_width, wrap):
        super().__init__()
        self.norm = nn.GroupNorm(32, channels, **KIND)
        self.enter, self.leave = nn.Linear(channels, channels, **KIND), nn.Linear(channels, channels, **KIND)
        self.layers = nn.ModuleList(wrap(TextLayer(channels, channels // head_dim, text_width)) for _ in range(layers))

    def forward(self, x, text):
        batch, channels, height, width = x.shape
        y = self.enter(self.norm(x).permute(0, 2, 3, 1).reshape(batch, height * width, channels))
        for layer in self.layers:
            y = layer(y, text)
        return x + self.leave(y).view(batch, height, width, channels).permute(0, 3, 1, 2)


class UNet(nn.Module):
    def __init__(self, model, compiled):
        super().__init__()
        net = model["unet"]
        self.model, self.levels, blocks = model, net["channels"], net.get("residual_blocks", 2)
        wrap = torch.compile if compiled else lambda block: block

        def stage(inputs, level):
            channels, layers = self.levels[level], net["transformer_layers"][level]
            text = TextBlock(channels, layers, net["head_dim"], net["text_width"], wrap) if layers else None
            return nn.ModuleList([wrap(Residual(inputs, channels))] + ([text] if text else []))

        self.enter = nn.Conv2d(net["latent_channels"], self.levels[0], 3, padding=1, **KIND)
        self.down, self.up, kept, channels = nn.ModuleList(), nn.ModuleList(), [self.levels[0]], self.levels[0]
        for level, width in enumerate(self.levels):
            for _ in range(blocks):
                self.down.append(stage(channels, level))
                channels = width
                kept.append(channels)
            if level + 1 < len(self.levels):
                self.down.append(nn.ModuleList([nn.Conv2d(channels, channels, 3, stride=2, padding=1, **KIND)]))
                kept.append(channels)
        last = len(self.levels) - 1
        self.middle, self.middle_end = stage(channels, last), wrap(Residual(channels, channels))
        for level in range(last, -1, -1):
            for _ in range(blocks + 1):
                self.up.append(stage(channels + kept.pop(), level))
                channels = self.levels[level]
            if level:
                self.up.append(nn.ModuleList([nn.Upsample(scale_factor=2), nn.Conv2d(channels, channels, 3, padding=1, **KIND)]))
        self.norm, self.leave = nn.GroupNorm(32, channels, **KIND), nn.Conv2d(channels, net["latent_channels"], 3, padding=1, **KIND)
        self.to(memory_format=torch.channels_last)

    def inputs(self, batch, side):
        net = self.model["unet"]
        latent = torch.randn(batch, net["latent_channels"], side // 8, side // 8, **KIND).to(memory_format=torch.channels_last)
        return latent, torch.randn(batch, self.model["text_tokens"], net["text_width"], **KIND)

    @staticmethod
    def run(stage, x, text):
        for block in stage:
            x = block(x, text) if isinstance(block, TextBlock) else block(x)
        return x

    def forward(self, x, text):
        x = self.enter(x)
        kept = [x]
        for stage in self.down:
            x = self.run(stage, x, text)
            kept.append(x)
        x = self.middle_end(self.run(self.middle, x, text))
        for stage in self.up:
            grows = isinstance(stage[0], nn.Upsample)
            x = self.run(stage, x if grows else torch.cat((x, kept.pop()), 1), text)
        return self.leave(F.silu(self.norm(x)))


class Decoder(nn.Module):
    def __init__(self, model, compiled):
        super().__init__()
        net = model["decoder"]
        channels = net["channels"][-1]
        wrap = torch.compile if compiled else lambda block: block
        self.latent_channels = net["latent_channels"]
        self.enter, self.first, self.second = nn.Conv2d(net["latent_channels"], channels, 3, padding=1, **KIND), wrap(Residual(channels, channels)), wrap(Residual(channels, channels))
        self.norm, self.qkv, self.out = nn.GroupNorm(32, channels, **KIND), nn.Linear(channels, 3 * channels, **KIND), nn.Linear(channels, channels, **KIND)
        blocks = []
        for level in range(len(net["channels"]) - 1, -1, -1):
            for _ in range(net.get("residual_blocks", 3)):
                blocks.append(wrap(Residual(channels, net["channels"][level])))
                channels = net["channels"][level]
            if level:
                blocks += [nn.Upsample(scale_factor=2), nn.Conv2d(channels, channels, 3, padding=1, **KIND)]
        self.blocks = nn.Sequential(*blocks)
        self.last_norm, self.leave = nn.GroupNorm(32, channels, **KIND), nn.Conv2d(channels, 3, 3, padding=1, **KIND)
        self.to(memory_format=torch.channels_last)

    def inputs(self, batch, side):
        return (torch.randn(batch, self.latent_channels, side // 8, side // 8, **KIND).to(memory_format=torch.channels_last),)

    def forward(self, x):
        x = self.first(self.enter(x))
        batch, channels, height, width = x.shape
        y = self.norm(x).permute(0, 2, 3, 1).reshape(batch, height * width, channels)
        y = self.out(attend(*self.qkv(y).chunk(3, dim=-1), 1))
        x = self.second(x + y.view(batch, height, width, channels).permute(0, 3, 1, 2))
        return self.leave(F.silu(self.last_norm(self.blocks(x))))


def watts():
    shown = subprocess.run(["nvidia-smi", "--query-gpu=power.draw.instant,clocks.sm", "--format=csv,noheader,nounits", "-i", "0"],
                           capture_output=True, text=True).stdout.strip().split(",")
    return [float(value) for value in shown]


def timed(call, seconds):
    """Milliseconds of passes, and power and clock near the end."""
    times, drawn, start = [], (0.0, 0.0), time.monotonic()
    while True:
        begin, end = torch.cuda.Event(True), torch.cuda.Event(True)
        begin.record()
        call()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end))
        passed = time.monotonic() - start
        if passed > seconds:
            return times, drawn
        if passed > 0.8 * seconds and drawn[0] == 0:
            call()  # work is queued while the board is asked
            drawn = watts()


def measure(network, inputs, replayed, sustained_seconds):
    for _ in range(3):
        network(*inputs)
    torch.cuda.synchronize()
    call = lambda: network(*inputs)
    if replayed:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            network(*inputs)
        call = graph.replay
    call()
    torch.cuda.synchronize()
    time.sleep(1.0)
    burst, _ = timed(call, 0.05)
    held, (power, clock) = timed(call, sustained_seconds)
    return min(burst[:3]), statistics.median(held[len(held) // 2:]), power, clock


def cases(models):
    """network class, model, images, side"""
    sizes = ((1, 512), (1, 1024), (4, 1024))
    for name in ("flux.1-dev", "flux.1-schnell", "qwen-image", "sd3-medium", "sd3.5-large", "sdxl"):
        for images, side in sizes:
            yield (UNet if "unet" in models[name] else Transformer), models[name], images, side
    for name in ("sdxl", "qwen-image"):
        for images, side in sizes:
            yield Decoder, models[name], images, side


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device-name", required=True)
    parser.add_argument("--models", required=True, type=pathlib.Path)
    parser.add_argument("--out", required=True)
    parser.add_argument("--modes", default="eager,compiled")
    parser.add_argument("--only", default="", help="these models, with commas between")
    parser.add_argument("--sustained-seconds", type=float, default=3)
    options = parser.parse_args()
    models = {path.stem: json.loads(path.read_text()) for path in sorted(options.models.glob("*.json"))}
    columns = ["device", "model", "part", "mode", "images", "side", "burst_ms", "sustained_ms", "watts", "clock_mhz", "peak_gb", "parameters"]
    with open(options.out, "w", newline="") as file, torch.inference_mode():
        writer = csv.writer(file)
        writer.writerow(columns)
        for mode in options.modes.split(","):
            network, key = None, None
            for kind, model, images, side in cases(models):
                if options.only and model["name"] not in options.only.split(","):
                    continue
                part = "decoder" if kind is Decoder else "step"
                passes = 1 if kind is Decoder else model["guidance_passes"]
                try:
                    if key != (kind, model["name"]):
                        del network
                        torch.cuda.empty_cache()
                        torch._dynamo.reset()
                        network, key = kind(model, mode == "compiled"), (kind, model["name"])
                    torch.cuda.reset_peak_memory_stats()
                    burst, sustained, power, clock = measure(network, network.inputs(images * passes, side), mode == "compiled",
                                                             options.sustained_seconds)
                except Exception as problem:  # the other cases are still worth having
                    print(model["name"], part, mode, images, side, repr(problem)[:300], flush=True)
                    network, key = None, None
                    continue
                count = sum(weights.numel() for weights in network.parameters())
                row = [options.device_name, model["name"], part, mode, images, side, f"{burst:.4g}", f"{sustained:.4g}", f"{power:.0f}",
                       f"{clock:.0f}", f"{torch.cuda.max_memory_allocated() / 1e9:.3f}", count]
                writer.writerow(row)
                file.flush()
                print(*row, flush=True)


main()
