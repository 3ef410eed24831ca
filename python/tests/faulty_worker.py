"""A worker that measures, and breaks once in each of several ways: ``faulty_worker.py FOLDER``.

It passes lines to a real worker and back. ``FOLDER`` is shared by all of its processes, so that each fault happens once: the first
screens are lost with the worker, with the actor that owns it, and by saying nothing.
"""

import json
import os
import pathlib
import signal
import subprocess
import sys

state = pathlib.Path(sys.argv[1])


def first(name):
    """Whether this is the first to ask."""
    try:
        (state / name).mkdir()
    except FileExistsError:
        return False
    return True


def main():
    pipe = subprocess.PIPE
    command = [sys.executable, "-m", "tilewright._worker", "--device", "cpu"]
    with subprocess.Popen(command, stdin=pipe, stdout=pipe) as worker:
        sys.stdout.buffer.write(worker.stdout.readline())
        sys.stdout.flush()
        for line in sys.stdin.buffer:
            task = json.loads(line)["task"]
            if task["mode"] == "screen":
                if first("worker"):
                    os.kill(os.getpid(), signal.SIGKILL)
                if first("actor"):
                    os.kill(os.getppid(), signal.SIGKILL)
                # With a result to go by the deadline is short.
                if task["how"]["best"] is not None and first("hang"):
                    signal.pause()
            worker.stdin.write(line)
            worker.stdin.flush()
            sys.stdout.buffer.write(worker.stdout.readline())
            sys.stdout.flush()


main()
