"""Many questions at once, on any executor of concurrent.futures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from concurrent.futures import Executor, Future
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
    questions = [_copied(spec) for spec in specs]
    answers: list[Result | Exception] = []
    sent: list[Future[Result | Exception] | Exception] = []
    try:
        if executor is not None:
            for question in questions:
                sent.append(_submitted(executor, question))
        for place, question in enumerate(questions):
            try:
                answers.append(_answer_to(sent[place]) if sent else answer(question))
            except Exception as error:  # of the executor: a worker died, a question could not be sent
                answers.append(error)
            if progress is not None:
                progress(len(answers), len(questions))
    except BaseException:
        for one in sent:
            if not isinstance(one, Exception):
                one.cancel()
        raise
    return answers


def answer(question: Mapping[str, Any] | Exception) -> Result | Exception:
    """What a worker does. An exception is returned, since some executors stop at one that is raised."""
    if isinstance(question, Exception):
        return question
    try:
        return ask(question)
    except Exception as error:
        return error


def _copied(spec: Mapping[str, Any]) -> dict[str, Any] | Exception:
    """What is no question fails at its own place."""
    try:
        return dict(spec)
    except Exception as error:
        return error


def _submitted(
    executor: Executor, question: dict[str, Any] | Exception
) -> Future[Result | Exception] | Exception:
    """An executor that has been shut down, or whose workers died, refuses what comes after; the answers stay."""
    if isinstance(question, Exception):
        return question
    try:
        return executor.submit(answer, question)
    except Exception as error:
        return error


def _answer_to(sent: Future[Result | Exception] | Exception) -> Result | Exception:
    return sent if isinstance(sent, Exception) else sent.result()
