"""What runs on a host of the cluster: an actor that owns a worker process, and starts another one when that is gone."""

import os
import socket
import sys

from ._checks import check_answer, check_hello, check_same
from ._process import Fault, Process

#: How long a process may take to its hello: a GPU's driver starts, and a processor measures itself.
HELLO = 120.0


class Seat:
    """Owns one worker process at a time. A job that is late, or whose process dies, costs that process alone."""

    def __init__(self, options, command):
        # By default this package's own worker, by the interpreter of the host.
        self._command = ["sh", "-c", command] if command else [sys.executable, "-m", "tilewright._worker", *options]
        self._process = None
        #: What its first process said of itself. Whoever owns the seat has seen that one alone.
        self._hello = None

    def open(self):
        """Starts a process, unless there is one, and tells what it and its host are."""
        try:
            hello = self._open()
        except Fault as fault:
            return {"fault": self._failed(fault)}
        return {"hello": hello, "host": socket.gethostname(), "process": self._process.pid, "actor": os.getpid()}

    def perform(self, line, seconds, number, mode):
        """Does a job: the answer of the process, or what it did instead, or why there is none to give the job to."""
        try:
            self._open()
        except Fault as fault:
            return {"unready": self._failed(fault)}
        try:
            answer = self._process.ask(line, seconds)
            check_answer(answer, number, mode)
        except Fault as fault:
            return {"fault": self._failed(fault)}
        if answer["outcome"].get("Err", {}).get("sticky"):
            self._close()
        return {"answer": answer}

    def _open(self):
        # One that ended between two jobs costs neither of them.
        if self._process is not None and self._process.has_ended():
            self._close()
        if self._process is None:
            self._process = Process(self._command)
            hello = self._process.ask(b"", HELLO)
            check_hello(hello)
            # Where a device is lost the next process says so in its hello, and would answer every job at once by an error.
            if self._hello is not None:
                check_same(self._hello, hello)
            self._hello = self._hello or hello
        return self._hello

    def _failed(self, fault):
        self._close()
        return {"kind": fault.kind, "words": fault.words, "last": fault.last}

    def _close(self):
        if self._process is not None:
            self._process.kill()
            self._process = None
