"""Times convolutions in bf16 on one GPU, channels last, replayed as a CUDA graph.

    python3 tools/measure_convolutions.py --out convolutions.csv

Shapes are those of image models and vision networks: sides of 16 to 1024 points, 64 to 1280 channels. cuDNN chooses among
its algorithms by trying them. There is no bias: PyTorch adds it in a pass of its own, which compilers put into the next
operator. A row is the median of seven short bursts.
"""
import argparse
import csv
import statistics

import torch
import torch.nn.functional as F

torch.backends.cudnn.benchmark = True
MOST_BYTES = 6e9


def shapes():
    for images in (1, 2, 4):
        for side in (16, 32, 64, 128, 256, 512, 1024):
            for inputs, outputs in ((64, 64), (96, 96), (128, 128), (192, 192), (256, 128), (256, 256), (320, 320), (384, 384),
                                    (512, 256), (512, 512), (640, 640), (960, 640), (1280, 1280), (2560, 1280)):
                for kernel in (1, 3):
                    points = images * side * side
                    if points * max(inputs, outputs) * 2 > MOST_BYTES or points * inputs * outputs * kernel * kernel > 6e12:
                        continue
                    if points < 1024:
                        continue
                    yield images, side, inputs, outputs, kernel


def milliseconds(images, side, inputs, outputs, kernel):
    x = torch.randn(images, inputs, side, side, device="cuda", dtype=torch.bfloat16).to(memory_format=torch.channels_last)
    weight = torch.randn(outputs, inputs, kernel, kernel, device="cuda", dtype=torch.bfloat16)
    weight = weight.to(memory_format=torch.channels_last)
    run = lambda: F.conv2d(x, weight, padding=kernel // 2)
    for _ in range(3):
        run()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    repeats = 10
    with torch.cuda.graph(graph):
        for _ in range(repeats):
            run()
    times = []
    for _ in range(7):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        graph.replay()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end) / repeats)
    return statistics.median(times)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", required=True)
    arguments = parser.parse_args()
    with open(arguments.out, "w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["images", "side", "inputs", "outputs", "kernel", "ms"])
        for shape in shapes():
            table.writerow([*shape, f"{milliseconds(*shape):.5g}"])
            file.flush()
            torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
