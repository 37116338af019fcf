"""Times of an engine's steps, for programs that schedule by themselves."""

from __future__ import annotations

import array
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from foretoken import _foretoken
from foretoken.commands import _fields


class StepTime(NamedTuple):
    """Seconds of a step, its interval of 90%, and what the prediction rests on."""

    seconds: float
    low: float
    high: float
    confidence: str


class StepPredictor:
    """How long the steps of an engine take.

        steps = foretoken.StepPredictor(model="Llama-3.1-8B", device="h100_sxm", engine="vllm")
        steps.predict([[64, 2000, 0, 0, 0], [64, 2000, 1, 512, 0]])

    Keywords are the flags of `foretoken endpoint` about model, device, layout, engine and deployment. The engine is put
    together once; a step costs about a microsecond. One step at a time runs in a predictor: use one for each thread.
    """

    #: Of the rows that `predict` takes. Contexts are tokens in the cache before the step; those of decodes are a mean.
    columns = ("decodes", "decode_context", "prompts", "prompt_tokens", "prompt_context")

    def __init__(self, **flags: Any) -> None:
        self._native = _foretoken.StepPredictor(_fields(flags), _foretoken.__file__)
        #: What the engine allows: max_num_seqs, max_num_batched_tokens, block_size, num_gpu_blocks.
        self.limits: dict[str, int] = self._native.limits()

    def predict(self, batches: Any, return_interval: bool = False) -> Any:
        """Seconds of each batch: rows of the five `columns`.

        NumPy arrays where NumPy is installed, else array.array. With `return_interval` also the low and high ends of
        the interval of 90%.
        """
        rows, count = _rows(batches)
        seconds, low, high = (_zeros(count) for _ in range(3))
        self._native.predict(rows, seconds, low, high)
        return (seconds, low, high) if return_interval else seconds

    def predict_batch(
        self, decodes: Sequence[int] = (), prompts: Iterable[Sequence[int | bool]] = ()
    ) -> StepTime:
        """One batch as it is: the tokens in the cache of each decode, and (new tokens, cached tokens) of each prompt.

        A third member of a prompt says whether it ends in this step, so that a token is sampled; default: True.
        """
        chunks = [(*chunk, True) if len(chunk) == 2 else tuple(chunk) for chunk in prompts]
        return StepTime(*self._native.predict_batch(list(decodes), chunks))


def _numpy() -> Any:
    try:
        import numpy
    except ImportError:
        return None
    return numpy


def _zeros(count: int) -> Any:
    numpy = _numpy()
    return numpy.zeros(count) if numpy else array.array("d", bytes(8 * count))


def _rows(batches: Any) -> tuple[Any, int]:
    width = len(StepPredictor.columns)
    numpy = _numpy()
    if numpy:
        rows = numpy.ascontiguousarray(batches, dtype=numpy.float64)
        if rows.ndim != 2 or rows.shape[1] != width:
            raise ValueError(f"batches: shape {rows.shape}, expected (rows, {width}): {', '.join(StepPredictor.columns)}")
        return rows, rows.shape[0]
    flat = array.array("d")
    count = 0
    for row in batches:
        values = list(row)
        if len(values) != width:
            raise ValueError(f"batches: a row of {len(values)}, expected {width}: {', '.join(StepPredictor.columns)}")
        flat.extend(values)
        count += 1
    return flat, count
