"""Runs every script of examples/python."""

import pathlib
import subprocess
import sys
import unittest

SCRIPTS = sorted(pathlib.Path("examples/python").glob("*.py"))


class Examples(unittest.TestCase):
    def test_each_runs_and_prints_something(self):
        self.assertTrue(SCRIPTS)
        for script in SCRIPTS:
            with self.subTest(script=script.name):
                outcome = subprocess.run([sys.executable, str(script)], capture_output=True, text=True)
                self.assertEqual(outcome.returncode, 0, outcome.stderr)
                self.assertTrue(outcome.stdout)


if __name__ == "__main__":
    unittest.main()
