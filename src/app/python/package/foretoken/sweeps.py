"""Many questions at once, on any executor of concurrent.futures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from concurrent.futures import Executor
from typing import Any, Callable

from foretoken.commands import ask
from foretoken.result import Result


def sweep(
    specs: Iterable[Mapping[str, Any]],
    executor: Executor | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> list[Result | Exception]:
    """Answers many questions, each a dict as foretoken.ask takes it. The answers come in the order of the questions.

    The executor may be a ProcessPoolExecutor, a ThreadPoolExecutor, Dask's client.get_executor(), an
    mpi4py.futures.MPIPoolExecutor or any other of that interface; without one, questions are answered here one by one.
    The answers are the same whatever the executor.

    A question that fails has its exception in place of an answer, and the others are not affected.
    `progress` is called with the number of answers so far and that of questions.
    """
    questions = [dict(spec) for spec in specs]
    answers: list[Result | Exception] = []
    waiting = None if executor is None else [executor.submit(answer, question) for question in questions]
    try:
        for place, question in enumerate(questions):
            try:
                answers.append(answer(question) if waiting is None else waiting[place].result())
            except Exception as error:  # of the executor: a worker died, a question could not be sent
                answers.append(error)
            if progress is not None:
                progress(len(answers), len(questions))
    except BaseException:
        for future in waiting or []:
            future.cancel()
        raise
    return answers


def answer(question: Mapping[str, Any]) -> Result | Exception:
    """What a worker does. An exception is returned, since some executors stop at one that is raised."""
    try:
        return ask(question)
    except Exception as error:
        return error
