"""How many requests per second a GPU serves before one in a hundred waits too long for its first token."""

import foretoken

GOAL_MS = 500


def p99_ttft_ms(rate):
    run = foretoken.serve(model="Llama-3.1-8B", device="h100_sxm", request_rate=rate, num_prompts=300, intervals=False)
    return run["p99_ttft_ms"]


print(f"Llama-3.1-8B on h100_sxm: p99 TTFT of at most {GOAL_MS} ms")
enough, too_much = 1.0, 64.0
while too_much / enough > 1.05:
    rate = (enough * too_much) ** 0.5
    latency = p99_ttft_ms(rate)
    print(f"  {rate:6.2f} requests/s: {latency:8.1f} ms")
    if latency <= GOAL_MS:
        enough = rate
    else:
        too_much = rate
print(f"Capacity: {enough:.1f} requests/s")
