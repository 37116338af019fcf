#!/usr/bin/env python3
"""Times whole networks in PyTorch on this machine's GPU: eager, and as a captured CUDA graph.

Prints CSV: network,batch,dtype,graph_ms,eager_ms; each the least of many runs. Needs torch and transformers; weights are random.
"""
import sys
import time

import torch
import transformers as hf


def networks():
    yield "resnet50", hf.ResNetForImageClassification(hf.ResNetConfig(num_labels=1000)), "image"
    yield "mobilenet_v2", hf.MobileNetV2ForImageClassification(hf.MobileNetV2Config(num_labels=1000)), "image"
    yield "vit_b_16", hf.ViTForImageClassification(hf.ViTConfig(num_labels=1000, attn_implementation="eager")), "image"
    yield "swin_t", hf.SwinForImageClassification(hf.SwinConfig(num_labels=1000)), "image"
    yield "bert_base_s128", hf.BertModel(hf.BertConfig(attn_implementation="eager")), "text"


def inputs(kind, batch, dtype):
    if kind == "image":
        return (torch.randn(batch, 3, 224, 224, device="cuda", dtype=dtype),)
    return (torch.randint(0, 30000, (batch, 128), device="cuda"),)


def least_ms(run, synchronise_each):
    best = float("inf")
    begin = time.perf_counter()
    while time.perf_counter() - begin < 1.0:
        torch.cuda.synchronize()
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        wall = time.perf_counter()
        start.record()
        run()
        end.record()
        torch.cuda.synchronize()
        elapsed = (time.perf_counter() - wall) * 1e3 if synchronise_each else start.elapsed_time(end)
        best = min(best, elapsed)
    return best


def measure(network, arguments):
    with torch.no_grad():
        for _ in range(5):
            network(*arguments)
        eager = least_ms(lambda: network(*arguments), True)
        try:
            stream = torch.cuda.Stream()
            stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(stream):
                network(*arguments)
            torch.cuda.current_stream().wait_stream(stream)
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                network(*arguments)
            return least_ms(graph.replay, False), eager
        except RuntimeError as error:
            print(f"no graph: {error}", file=sys.stderr)
            torch.cuda.synchronize()
            return float("nan"), eager


def main():
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = True
    print("network,batch,dtype,graph_ms,eager_ms", flush=True)
    for name, network, kind in networks():
        for dtype in (torch.float32, torch.float16):
            network = network.to("cuda", dtype).eval()
            for batch in (1, 8, 32):
                graph, eager = measure(network, inputs(kind, batch, dtype))
                print(f"{name},{batch},{str(dtype).split('.')[1]},{graph:.5g},{eager:.5g}", flush=True)


if __name__ == "__main__":
    main()
