"""foretoken as the latency model of other simulators. None of them is needed to import this."""

from __future__ import annotations

from typing import Any

from foretoken.steps import StepPredictor


class SglangStepTimes:
    """Times the steps of SGLang's schedule simulator (sglang.srt.debug_utils.schedule_simulator).

        recorder = SglangStepTimes(StepPredictor(model=..., device=..., engine="sglang"))
        Simulator(..., recorders=[recorder]).run(requests).summary["seconds"]

    The simulator counts steps of decodes. Each takes as long as its slowest GPU. Requests that the very first step
    finishes are not counted: the simulator shows them to no recorder.
    """

    def __init__(self, steps: StepPredictor) -> None:
        self._steps = steps
        #: Of each step.
        self.seconds: list[float] = []
        self._unfinished: list[list[Any]] = []  # requests of each GPU after the step before

    def on_step_end(self, step: int, gpu_states: list[Any]) -> None:
        # The simulator has taken requests that finished in this step out of both lists.
        unfinished = [[*gpu.running_requests, *gpu.pending_requests] for gpu in gpu_states]
        still_there = {id(request) for of_gpu in unfinished for request in of_gpu}
        rows = []
        for place, gpu in enumerate(gpu_states):
            before = self._unfinished[place] if step > 0 and place < len(self._unfinished) else []
            batch = [*gpu.running_requests, *(request for request in before if id(request) not in still_there)]
            if batch:
                mean = sum(request.seq_len() for request in batch) / len(batch)
                rows.append([len(batch), max(0.0, mean - 1), 0, 0, 0])
        self._unfinished = unfinished
        self.seconds.append(max(map(float, self._steps.predict(rows))) if rows else 0.0)

    def get_summary(self) -> dict[str, float]:
        return {"seconds": sum(self.seconds)}


def llm_d_settings(
    steps: StepPredictor, input_tokens: int = 1024, output_tokens: int = 256, max_num_seqs: int | None = None
) -> dict[str, Any]:
    """Latency settings of llm-d-inference-sim (--config, as YAML) for such requests.

    Its model is a line for prompts, one time between tokens, and a factor that grows with the number of requests to
    `max_num_seqs`. The line goes through a quarter of the prompt and the whole; the factor is a full batch against one
    request.
    """
    seats = max_num_seqs or min(steps.limits["max_num_seqs"], 64)
    context = input_tokens + output_tokens // 2
    short = max(1, input_tokens // 4)
    whole, part, alone, full = map(
        float,
        steps.predict(
            [[0, 0, 1, input_tokens, 0], [0, 0, 1, short, 0], [1, context, 0, 0, 0], [seats, context, 0, 0, 0]]
        ),
    )
    per_token = (whole - part) / (input_tokens - short) if input_tokens > short else 0.0
    return {
        "latency-calculator": "per-token",
        "max-num-seqs": seats,
        "prefill-overhead": _duration(whole - per_token * input_tokens),
        "prefill-time-per-token": _duration(per_token),
        "inter-token-latency": _duration(alone),
        "time-factor-under-load": round(max(1.0, full / alone), 3),
    }


def _duration(seconds: float) -> str:
    """As Go writes it, in whole nanoseconds."""
    return f"{max(0, round(1e9 * seconds))}ns"
