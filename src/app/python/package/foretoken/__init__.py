"""Predicts time, memory, energy and cost of ML workloads.

Each command of foretoken is a function, each of its flags a keyword:

    import foretoken
    run = foretoken.serve(model="Llama-3.1-8B", device="h100_sxm", request_rate=4, num_prompts=200)
    run["mean_ttft_ms"], run.text, run.command

foretoken.help("serve") lists the flags; foretoken.ask takes a whole question as a dict, foretoken.sweep many of them, on
any executor. foretoken.StepPredictor times single steps of an engine, about a microsecond each.
"""

from foretoken._foretoken import InputError
from foretoken._foretoken import version as __version__
from foretoken.commands import *  # every command, under its own name
from foretoken.commands import ask, help, run
from foretoken.result import Result
from foretoken.steps import StepPredictor, StepTime
from foretoken.sweeps import sweep
