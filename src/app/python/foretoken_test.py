"""Tests of `import foretoken`: flags, results, errors, threads and types."""

import ast
import collections
import contextlib
import importlib.util
import io
import json
import multiprocessing
import os
import pathlib
import pickle
import re
import subprocess
import sys
import threading
import time
import types
import unittest
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import foretoken
from foretoken import _foretoken, adapters, commands

try:
    import numpy
except ImportError:
    numpy = None

PACKAGE = pathlib.Path(foretoken.__file__).parent
SERVE = {"model": "Llama-3.1-8B", "device": "h100_sxm", "request_rate": 4, "num_prompts": 20, "intervals": False}


def flag_words(command, *words, **flags):
    fields = commands._fields(flags)
    return _foretoken.command_words([command, *words], fields)[1 + len(words) :]


def python(code, environment):
    """What an interpreter of its own prints."""
    line = [sys.executable, "-c", code]
    return subprocess.run(line, env=environment, stdout=subprocess.PIPE, text=True, timeout=120, check=True).stdout


class Flags(unittest.TestCase):
    def test_underscores_are_dashes_and_values_are_texts(self):
        self.assertEqual(flag_words("serve", request_rate=4.5), ["--request-rate", "4.5"])
        self.assertEqual(flag_words("serve", request_rate=float("inf")), ["--request-rate", "inf"])
        self.assertEqual(flag_words("serve", trace=pathlib.Path("a.csv")), ["--trace", "a.csv"])

    def test_what_json_has_no_value_for_is_refused(self):
        for value in ({"ttft:500"}, (goal for goal in ["ttft:500"]), b"ttft:500", {}.keys(), ["a", {"b"}]):
            with self.assertRaisesRegex(foretoken.InputError, "expected a list"):
                flag_words("serve", goodput=value)
        with self.assertRaisesRegex(foretoken.InputError, "expected a list"):
            foretoken.ask({"command": "kernel gemm", "device": {"h100_sxm"}})
        self.assertEqual(flag_words("serve", goodput=collections.deque(["a"])), ["--goodput", "a"])

    def test_half_a_letter_is_wrong_input(self):
        for ask in (
            lambda: foretoken.step(model="\ud800", device="h100_sxm"),
            lambda: foretoken.ask({"command": "step", "mod\udc80l": 1}),
            lambda: foretoken.run("devices", "\udfff"),
            lambda: foretoken.help("kernel", "\ud800"),
        ):
            with self.assertRaisesRegex(foretoken.InputError, "valid Unicode text"):
                ask()

    def test_a_path_is_a_word(self):
        with self.assertRaisesRegex(foretoken.InputError, "no_such_study.yaml"):
            foretoken.study(pathlib.Path("no_such_study.yaml"))

    def test_any_name_of_a_flag_will_do(self):
        for name in ("tp", "tensor_parallel_size"):
            self.assertEqual(flag_words("serve", **{name: 8}), ["--tensor-parallel-size", "8"])

    def test_true_false_and_none_switch_on_off_and_leave_out(self):
        words = flag_words("serve", energy=True, intervals=False, breakdown=None)
        self.assertEqual(words, ["--energy", "--no-intervals"])

    def test_true_is_no_value_and_a_value_is_not_true(self):
        for flags in ({"request_rate": True}, {"energy": 1}):
            with self.assertRaisesRegex(foretoken.InputError, "true or false"):
                flag_words("serve", **flags)

    def test_lists_are_repeated_where_a_flag_takes_several_and_joined_where_it_takes_one_text(self):
        words = flag_words("serve", goodput=["ttft:500", "tpot:50"])
        self.assertEqual(words, ["--goodput", "ttft:500", "--goodput", "tpot:50"])
        self.assertEqual(flag_words("serve", replica=["tp=1", "tp=2"]), ["--replica", "tp=1", "--replica", "tp=2"])
        self.assertEqual(flag_words("speculate", batch_sizes=[1, 8]), ["--batch-sizes", "1,8"])

    def test_a_dict_is_json(self):
        words = flag_words("serve", speculative_config={"method": "ngram"})
        self.assertEqual(words, ["--speculative-config", '{"method":"ngram"}'])

    def test_a_dict_of_a_flag_that_takes_several_is_names_and_values(self):
        words = flag_words("edge", bind={"batch": 8, "sequence": 128})
        self.assertEqual(words, ["--bind", "batch=8", "--bind", "sequence=128"])

    def test_a_dict_of_settings_is_one_text(self):
        words = flag_words("serve", replica=[{"tp": 2, "max_num_seqs": 64}], prefill_pool={"count": 1})
        self.assertEqual(words, ["--replica", "tp=2,max-num-seqs=64", "--prefill-pool", "count=1"])

    def test_a_command_that_is_not_there_is_named_with_the_nearest(self):
        for ask in (lambda: foretoken.run("serv", model="x"), lambda: foretoken.help("serv")):
            with self.assertRaisesRegex(foretoken.InputError, "foretoken: serv\n  expected one of .*did you mean serve"):
                ask()

    def test_a_value_that_begins_with_a_dash_is_not_taken_for_a_flag(self):
        self.assertEqual(flag_words("serve", explain_request=-1), ["--explain-request=-1"])

    def test_flags_of_a_subcommand_are_known(self):
        self.assertEqual(flag_words("kernel", "gemm", kernel="any", m=1), ["--kernel", "any", "--m", "1"])

    @unittest.skipIf(numpy is None, "NumPy is not installed")
    def test_numbers_and_arrays_of_numpy_are_taken(self):
        self.assertEqual(flag_words("serve", num_prompts=numpy.int64(3)), ["--num-prompts", "3"])
        self.assertEqual(flag_words("serve", energy=numpy.bool_(True)), ["--energy"])
        self.assertEqual(flag_words("speculate", batch_sizes=numpy.array([1, 2])), ["--batch-sizes", "1,2"])


class Results(unittest.TestCase):
    def test_text_and_json_are_those_of_the_command_line(self):
        result = foretoken.kernel("gemm", device="h100_sxm", m=128, n=4096, k=4096)
        self.assertEqual(result.command, "foretoken kernel gemm --device h100_sxm --m 128 --n 4096 --k 4096")
        program = PACKAGE.parent.parent / "foretoken"
        if not program.exists():
            self.skipTest("the program was not built")
        line = [str(program), *result.command.split()[1:]]
        self.assertEqual(subprocess.run(line, capture_output=True, text=True, check=True).stdout, result.text)
        printed = subprocess.run([*line, "--json"], capture_output=True, text=True, check=True).stdout
        self.assertEqual(json.loads(printed), result)

    def test_a_whole_question_gets_the_answer_of_its_function(self):
        spec = {"command": "kernel gemm", "device": "h100_sxm", "m": 128, "n": 4096, "k": 4096}
        result = foretoken.ask(spec)
        self.assertEqual(result, foretoken.kernel("gemm", device="h100_sxm", m=128, n=4096, k=4096))
        self.assertEqual(result.command, "foretoken kernel gemm --device h100_sxm --m 128 --n 4096 --k 4096")

    def test_a_path_leads_into_lists_and_dicts(self):
        step = foretoken.step(model="Llama-3.1-8B", device="h100_sxm", batch=1, context_len=128)
        self.assertEqual(step.at("seconds.value"), step["seconds"]["value"])
        operators = step["stages"][0]["operators"]
        self.assertEqual(step.at("stages.0.operators.name"), [operator["name"] for operator in operators])
        with self.assertRaisesRegex(KeyError, "nothing at 'valeu'; there are value, low"):
            step.at("seconds.valeu")

    @unittest.skipIf(numpy is None, "NumPy is not installed")
    def test_lists_become_arrays(self):
        run = foretoken.serve(**SERVE, details_in_json=True)
        ttfts = run.array("ttfts")
        self.assertEqual(ttfts.shape, (20,))
        self.assertAlmostEqual(float(ttfts.mean()) * 1000, run["mean_ttft_ms"], places=6)
        self.assertEqual(run.array("itls").shape[0], 20)
        self.assertEqual(run.array("time_series.points.running").ndim, 1)
        uneven = foretoken.Result({"rows": [[1], [2, 3]]}, "", "").array("rows")
        self.assertEqual([row.tolist() for row in uneven], [[1], [2, 3]])
        with self.assertRaises(TypeError):
            run.array("duration")

    def test_details_are_only_there_when_asked_for(self):
        self.assertNotIn("ttfts", foretoken.serve(**SERVE))
        self.assertEqual(len(foretoken.serve(**SERVE, details_in_json=True)["ttfts"]), 20)

    def test_a_notebook_shows_a_table_without_scripts_and_with_everything_escaped(self):
        result = foretoken.Result({"a<b": "x&y", "t": {"value": 1.5, "low": 1.0, "high": 2.0}, "deep": [1]}, "<&>", "c")
        page = result._repr_html_()
        self.assertIn("a&lt;b</th><td>x&amp;y", page)
        self.assertIn("1.5 [1 to 2]", page)
        self.assertIn("<pre>&lt;&amp;&gt;</pre>", page)
        self.assertNotIn("<script", page)
        self.assertNotIn("http", page)

    def test_a_copy_keeps_what_it_knows(self):
        result = foretoken.devices("h100_sxm")
        again = pickle.loads(pickle.dumps(result))
        self.assertEqual((again, again.text, again.command), (result, result.text, result.command))

    def test_help_is_that_of_the_program(self):
        for words, expected in (((), "serve"), (("serve",), "--request-rate"), (("kernel", "gemm"), "--m")):
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                foretoken.help(*words)
            self.assertIn(expected, printed.getvalue())


    def test_help_of_a_subcommand_that_is_not_there_names_the_nearest(self):
        with self.assertRaisesRegex(foretoken.InputError, "foretoken kernel: gemmm(.|\n)*did you mean gemm?"):
            foretoken.help("kernel", "gemmm")
        with self.assertRaisesRegex(foretoken.InputError, "foretoken serve: gemm(.|\n)*no further argument"):
            foretoken.help("serve", "gemm")


class Failures(unittest.TestCase):
    def test_wrong_input_is_a_value_error_with_the_message_of_the_command_line(self):
        with self.assertRaisesRegex(foretoken.InputError, "h100_sxn(.|\n)*did you mean h100_sxm"):
            foretoken.step(model="Llama-3.1-8B", device="h100_sxn")
        self.assertTrue(issubclass(foretoken.InputError, ValueError))
        self.assertEqual(foretoken.InputError.__module__, "foretoken")

    def test_an_answer_that_says_no_is_a_result(self):
        result = foretoken.serve(model="Llama-3.1-70B", device="h100_sxm", num_prompts=1)
        self.assertEqual(result.exit_status, 3)
        self.assertIn("the weights do not fit", result["failure"])

    def test_an_unknown_flag_or_command_is_answered_with_the_nearest(self):
        with self.assertRaisesRegex(foretoken.InputError, "did you mean --request-rate"):
            foretoken.serve(model="Llama-3.1-8B", device="h100_sxm", request_rat=4)
        with self.assertRaisesRegex(foretoken.InputError, "did you mean serve"):
            foretoken.run("serv")

    def test_a_wrong_question_is_answered_with_the_path_of_the_field(self):
        for field, expected in (({"m": "many"}, "question: m = many"), ({"mm": 1}, "question: mm = 1(.|\n)*did you mean m")):
            with self.assertRaisesRegex(foretoken.InputError, expected):
                foretoken.ask({"command": "kernel gemm", "device": "h100_sxm", **field})
        with self.assertRaisesRegex(foretoken.InputError, "question(.|\n)*command"):
            foretoken.ask({"device": "h100_sxm"})

    def test_a_library_that_is_not_there_is_said_to_be_missing(self):
        code = "import foretoken\ntry: foretoken.devices()\nexcept foretoken.InputError as error: print(error)"
        self.assertIn("FORETOKEN_LIBRARY", python(code, {**os.environ, "FORETOKEN_LIBRARY": "/nowhere"}))

    def test_the_package_finds_the_library_by_itself(self):
        environment = {key: value for key, value in os.environ.items() if key != "FORETOKEN_LIBRARY"}
        if not (PACKAGE.parents[2] / "data" / "hardware").exists():
            self.skipTest("the build folder does not lie in the source folder")
        code = "import foretoken; print(len(foretoken.devices()['devices']))"
        self.assertGreater(int(python(code, environment)), 10)

    def test_an_interrupted_command_raises_at_once(self):
        code = (
            "import foretoken, threading, os, signal\n"
            "threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()\n"
            "try: foretoken.serve(model='Llama-3.1-8B', device='h100_sxm', request_rate=100, num_prompts=50_000_000)\n"
            "except KeyboardInterrupt: print('interrupted')\n"
        )
        self.assertEqual(python(code, os.environ), "interrupted\n")


class Threads(unittest.TestCase):
    def test_threads_get_the_answers_that_one_gets_alone(self):
        questions = [dict(SERVE, request_rate=rate) for rate in (2, 8)] * 2
        alone = [foretoken.serve(**question) for question in questions]
        together = [None] * len(questions)

        def ask(i):
            together[i] = foretoken.serve(**questions[i])

        threads = [threading.Thread(target=ask, args=(i,)) for i in range(len(questions))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(together, alone)

    def test_python_runs_on_while_a_command_works(self):
        done = threading.Event()

        def ask():
            foretoken.serve(**dict(SERVE, num_prompts=20_000, request_rate=20))
            done.set()

        thread = threading.Thread(target=ask)
        thread.start()
        turns = 0
        while not done.is_set():
            turns += 1
            time.sleep(0.001)
        thread.join()
        self.assertGreater(turns, 5)


class Types(unittest.TestCase):
    """What the stubs promise is what there is, and the other way round."""

    @staticmethod
    def functions(stub):
        tree = ast.parse((PACKAGE / stub).read_text())
        return {node.name: node for node in tree.body if isinstance(node, (ast.FunctionDef, ast.ClassDef))}

    def test_every_function_has_a_stub_and_every_stub_a_function(self):
        stubs = set(self.functions("commands.pyi"))
        there = {
            name
            for name, value in vars(commands).items()
            if callable(value) and value.__module__ == commands.__name__ and not name.startswith("_")
        }
        self.assertEqual(stubs, there)
        native = set(self.functions("_foretoken.pyi"))
        self.assertEqual(native, {name for name in vars(_foretoken) if not name.startswith("_")} - {"version"})
        self.assertIsInstance(_foretoken.version, str)
        self.assertTrue((PACKAGE / "py.typed").exists())

    def test_every_command_is_a_function_of_the_package(self):
        for name, _ in _foretoken.commands():
            self.assertTrue(callable(getattr(foretoken, commands.python_name(name))), name)

    def test_stubs_name_every_flag(self):
        stubs = self.functions("commands.pyi")
        for command in foretoken.man()["commands"]:
            arguments = stubs[commands.python_name(command["name"])].args
            named = {argument.arg for argument in arguments.kwonlyargs}
            for level in [command, *command["subcommands"]]:
                for flag in level["flags"]:
                    self.assertLessEqual({commands.python_name(name) for name in flag["names"]}, named, command["name"])


class Steps(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.steps = foretoken.StepPredictor(model="Llama-3.1-8B", device="h100_sxm", engine="vllm")

    def test_rows_and_the_step_command_agree(self):
        seconds, low, high = self.steps.predict([[64, 2000, 0, 0, 0], [1, 100, 2, 512, 0]], return_interval=True)
        asked = foretoken.step(model="Llama-3.1-8B", device="h100_sxm", batch=64, context_len=2000)
        self.assertAlmostEqual(seconds[0] / asked.at("seconds.value"), 1, delta=0.01)
        for i in range(2):
            self.assertLess(low[i], seconds[i])
            self.assertLess(seconds[i], high[i])

    def test_a_batch_of_equal_sequences_is_its_row(self):
        row = self.steps.predict([[3, 700, 2, 256, 128]])[0]
        batch = self.steps.predict_batch(decodes=[700] * 3, prompts=[(256, 128), (256, 128, True)])
        self.assertEqual(batch.seconds, row)
        self.assertIn(batch.confidence, ("measured", "interpolated", "extrapolated", "roofline"))

    def test_wrong_batches_are_named(self):
        for wrong in ([[0, 0, 0, 0, 0]], [[-1, 0, 0, 0, 0]], [[1, float("nan"), 0, 0, 0]], [[0, 0, 1, 0, 0]]):
            with self.assertRaises(foretoken.InputError):
                self.steps.predict(wrong)
        with self.assertRaises(ValueError):
            self.steps.predict([[1, 2, 3]])
        for wrong in ([[1e7, 1, 0, 0, 0]], [[1, 1e9, 0, 0, 0]], [[0, 0, 1, 1e11, 0]]):
            with self.assertRaisesRegex(foretoken.InputError, "row 0: (.|\n)*expected 0 to"):
                self.steps.predict(wrong)
        for wrong in ([2**62, 2**62], [100_000_001], [-1]):  # the sum of the first would overflow
            with self.assertRaisesRegex(foretoken.InputError, "decodes: "):
                self.steps.predict_batch(decodes=wrong)
        with self.assertRaises(foretoken.InputError):
            foretoken.StepPredictor(model="Llama-3.1-8B", device="h100_sxm", engin="vllm")
        with self.assertRaisesRegex(foretoken.InputError, "request_rate(.|\n)*schema endpoint"):
            foretoken.StepPredictor(model="Llama-3.1-8B", device="h100_sxm", request_rate=1)

    def test_no_rows_no_seconds(self):
        if numpy is not None:
            self.assertEqual(len(self.steps.predict(numpy.empty((0, 5)))), 0)

    def test_settings_of_llm_d_are_durations_and_a_factor(self):
        settings = adapters.llm_d_settings(self.steps, input_tokens=2000)
        for name in ("prefill-overhead", "prefill-time-per-token", "inter-token-latency"):
            self.assertRegex(settings[name], r"^[0-9]+ns$")
        alone = self.steps.predict([[0, 0, 1, 2000, 0]])[0]
        line = int(settings["prefill-overhead"][:-2]) + 2000 * int(settings["prefill-time-per-token"][:-2])
        self.assertAlmostEqual(1e-9 * line / alone, 1, delta=0.001)
        self.assertGreater(settings["time-factor-under-load"], 1)

    def test_steps_of_sglangs_schedule_simulator_take_as_long_as_the_slowest_gpu(self):
        def request(tokens):
            return types.SimpleNamespace(seq_len=lambda: tokens)

        recorder = adapters.SglangStepTimes(self.steps)
        idle = types.SimpleNamespace(running_requests=[], pending_requests=[])
        busy = types.SimpleNamespace(running_requests=[request(1001)] * 16, pending_requests=[])
        recorder.on_step_end(0, [idle, busy])
        self.assertEqual(recorder.seconds, [self.steps.predict([[16, 1000, 0, 0, 0]])[0]])
        recorder.on_step_end(0, [idle, idle])  # another run begins
        self.assertEqual(recorder.seconds[1:], [0])
        self.assertEqual(recorder.get_summary(), {"seconds": recorder.seconds[0]})

    def test_the_step_in_which_requests_finish_in_sglangs_simulator_counts_them(self):
        class Request:
            def __init__(self, tokens, left):
                self.tokens, self.left = tokens, left

            def seq_len(self):
                return self.tokens

        def step(gpu):
            """As the simulator does it: finished requests are gone before recorders look."""
            gpu.running_requests += gpu.pending_requests[: 2 - len(gpu.running_requests)]
            gpu.pending_requests = [one for one in gpu.pending_requests if one not in gpu.running_requests]
            for one in gpu.running_requests:
                one.tokens, one.left = one.tokens + 1, one.left - 1
            gpu.running_requests = [one for one in gpu.running_requests if one.left > 0]

        gpu = types.SimpleNamespace(
            running_requests=[], pending_requests=[Request(1000, 2), Request(3000, 3), Request(500, 1)]
        )
        recorder = adapters.SglangStepTimes(self.steps)
        for number in range(3):
            step(gpu)
            recorder.on_step_end(number, [gpu])
        contexts = [2000, 2001, 1751]  # of two requests each: the third waits for a place
        self.assertEqual(recorder.seconds, [self.steps.predict([[2, mean, 0, 0, 0]])[0] for mean in contexts])


SWEEP = [{"command": "step", "model": "Llama-3.1-8B", "device": "h100_sxm", "batch": batch} for batch in (1, 8, 64)]
SWEEP[1:1] = [{"command": "step", "model": "Llama-3.1-8B", "device": "no_such_device"}]
SWEEP.append({"command": "serve", **SERVE})


def answer_bytes(answers):
    return [
        (type(one).__name__, str(one)) if isinstance(one, Exception) else (json.dumps(one), one.text, one.command)
        for one in answers
    ]


class Sweeps(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.alone = foretoken.sweep(SWEEP)

    def test_answers_come_in_order_and_a_failure_keeps_its_place(self):
        self.assertEqual([isinstance(one, Exception) for one in self.alone], [False, True, False, False, False])
        self.assertIsInstance(self.alone[1], foretoken.InputError)
        self.assertIn("no_such_device", str(self.alone[1]))
        self.assertEqual(self.alone[2], foretoken.ask(SWEEP[2]))
        self.assertEqual(foretoken.sweep([]), [])

    def test_processes_and_threads_give_the_same_bytes(self):
        spawned = multiprocessing.get_context("spawn")
        for executor in (ThreadPoolExecutor(3), ProcessPoolExecutor(2, mp_context=spawned)):
            with executor:
                told = []
                answers = foretoken.sweep(SWEEP, executor, progress=lambda *counts: told.append(counts))
            self.assertEqual(answer_bytes(answers), answer_bytes(self.alone))
            self.assertEqual(told, [(i + 1, len(SWEEP)) for i in range(len(SWEEP))])

    def test_a_question_that_cannot_be_sent_fails_alone(self):
        questions = [SWEEP[0], {**SWEEP[0], "batch": threading.Lock()}, SWEEP[2]]
        with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as executor:
            answers = foretoken.sweep(questions, executor)
        self.assertIsInstance(answers[1], TypeError)
        self.assertEqual(answer_bytes(answers[::2]), answer_bytes([self.alone[0], self.alone[2]]))

    def test_a_question_that_is_none_fails_alone(self):
        for executor in (None, ThreadPoolExecutor(1)):
            answers = foretoken.sweep([SWEEP[0], 5, SWEEP[2]], executor)
            self.assertIsInstance(answers[1], TypeError)
            self.assertEqual(answer_bytes(answers[::2]), answer_bytes([self.alone[0], self.alone[2]]))

    def test_answers_stay_where_an_executor_takes_no_more(self):
        class Closing(ThreadPoolExecutor):
            def submit(self, *call):
                future = super().submit(*call)
                self.shutdown(wait=False)
                return future

        answers = foretoken.sweep([SWEEP[0], SWEEP[2]], Closing(1))
        self.assertEqual(answer_bytes(answers[:1]), answer_bytes(self.alone[:1]))
        self.assertIsInstance(answers[1], RuntimeError)

    def test_one_dict_may_be_every_question(self):
        def changed():
            spec = dict(SWEEP[0])
            for batch in (1, 2):
                spec["batch"] = batch
                yield spec

        asked = foretoken.sweep([{**SWEEP[0], "batch": batch} for batch in (1, 2)])
        self.assertEqual(answer_bytes(foretoken.sweep(changed())), answer_bytes(asked))

    @unittest.skipUnless(importlib.util.find_spec("distributed"), "no Dask here (package python3-distributed)")
    def test_a_dask_cluster_of_two_processes_gives_the_same_bytes(self):
        import distributed

        with distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs=50
        ) as cluster, distributed.Client(cluster) as client:
            answers = foretoken.sweep(SWEEP, client.get_executor())
        self.assertEqual(answer_bytes(answers), answer_bytes(self.alone))


class Documentation(unittest.TestCase):
    def test_the_python_in_the_documentation_runs(self):
        for file in ("docs/python.md", "README.md"):
            blocks = re.findall(r"^```python\n(.*?)^```", pathlib.Path(file).read_text(), re.MULTILINE | re.DOTALL)
            self.assertTrue(blocks)
            for number, code in enumerate(blocks):
                if numpy is None and ".array(" in code:
                    continue
                with self.subTest(file=file, block=number), contextlib.redirect_stdout(io.StringIO()):
                    exec(compile(code, f"{file} block {number}", "exec"), {})


if __name__ == "__main__":
    unittest.main()
