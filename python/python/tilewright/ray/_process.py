"""A worker process: started, asked, watched, and killed with all that it started."""

import collections
import json
import os
import selectors
import signal
import subprocess
import threading
import time

#: The longest line of the protocol, in bytes.
MAX_LINE = 16 << 20

#: How many of the last bytes of standard error go into a message.
LAST_WORDS = 1200

#: How long a process that has closed its output may take to end by itself, so that its own status is told.
GRACE = 0.5

_MEANINGS = {
    signal.SIGHUP: "its terminal is gone",
    signal.SIGINT: "interrupted",
    signal.SIGILL: "an instruction that this processor does not have",
    signal.SIGTRAP: "it stopped itself",
    signal.SIGABRT: "it stopped itself",
    signal.SIGBUS: "memory that is not there, or not aligned",
    signal.SIGFPE: "a division by zero or the like",
    signal.SIGKILL: "by another process, or by the system for want of memory",
    signal.SIGSEGV: "it touched memory that is not its own",
    signal.SIGTERM: "by another process",
    signal.SIGXCPU: "its processor time was used up",
}


class Fault(Exception):
    """What a process did instead of answering: what kind of error that is to a job (``died``, ``hang``, ``memory``, ``time`` or
    ``protocol``), and in words."""

    def __init__(self, kind, words, last):
        super().__init__(kind, words, last)
        self.kind, self.words, self.last = kind, words, last


class Process:
    """A process in a group of its own that is asked one line at a time."""

    def __init__(self, command):
        # As the pool of the tuner starts them: the group is the process's own, and it may kill all of it.
        environment = {**os.environ, "TILEWRIGHT_IN_POOL": "1"}
        # Ray sets it to what it booked, and a kernel of the CPU target and the library beside it may have the whole host.
        environment.pop("OMP_NUM_THREADS", None)
        pipe = subprocess.PIPE
        try:
            self._child = subprocess.Popen(
                command, stdin=pipe, stdout=pipe, stderr=pipe, start_new_session=True, env=environment
            )
        except OSError as err:
            raise Fault("died", f"cannot be started: {err}", "") from err
        self.pid = self._child.pid
        self._heard = bytearray()
        self._last = collections.deque(maxlen=LAST_WORDS)
        self._writing = threading.Lock()
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()
        os.set_blocking(self._child.stdin.fileno(), False)
        os.set_blocking(self._child.stdout.fileno(), False)

    def _listen(self):
        while chunk := os.read(self._child.stderr.fileno(), 4096):
            with self._writing:
                self._last.extend(chunk)

    def ask(self, line, seconds):
        """Sends a line, unless it is empty, and returns the message that comes back in time."""
        end = time.monotonic() + seconds
        left = memoryview(line)
        with selectors.DefaultSelector() as selector:
            selector.register(self._child.stdout, selectors.EVENT_READ)
            if left:
                selector.register(self._child.stdin, selectors.EVENT_WRITE)
            while (at := self._heard.find(b"\n")) < 0:
                rest = end - time.monotonic()
                if rest <= 0:
                    self.kill()
                    raise Fault("hang", f"did not answer within {seconds:.1f} s", self._words())
                for key, _ in selector.select(rest):
                    if key.fileobj is self._child.stdout:
                        self._hear()
                    else:
                        left = self._send(left)
                        if not left:
                            selector.unregister(self._child.stdin)
        message = bytes(self._heard[:at])
        del self._heard[: at + 1]
        try:
            return json.loads(message, parse_constant=_no_number)
        except (ValueError, RecursionError):
            words = message[:200].decode(errors="replace")
            self.kill()
            raise Fault("protocol", f"wrote a line that is no message: `{words}`", self._words()) from None

    def _send(self, left):
        try:
            return left[os.write(self._child.stdin.fileno(), left[: 1 << 16]) :]
        except BlockingIOError:
            return left
        except BrokenPipeError:
            # Its end shows on its output.
            return left[len(left) :]

    def _hear(self):
        chunk = os.read(self._child.stdout.fileno(), 1 << 16)
        self._heard += chunk
        if not chunk:
            raise self._ended()
        if len(self._heard) > MAX_LINE and b"\n" not in self._heard:
            self.kill()
            raise Fault("protocol", f"wrote a line of more than {MAX_LINE >> 20} MiB", self._words())

    def _ended(self):
        end = time.monotonic() + GRACE
        while not self.has_ended():
            if time.monotonic() >= end:
                self.kill()
                return Fault("died", "closed its standard output and lived on", self._words())
            time.sleep(0.002)
        status = self.kill()
        last = self._words()
        kind = "memory" if "memory allocation of" in last or "bad_alloc" in last else "died"
        return Fault("time" if status == -signal.SIGXCPU else kind, status_words(status), last)

    def _words(self):
        self._listener.join(GRACE)
        with self._writing:
            return bytes(self._last).decode(errors="replace").strip()

    def has_ended(self):
        """Whether it is gone. Its number stays its own until it is killed, or that of its group might be others' then."""
        if self._child.returncode is not None:
            return True
        try:
            return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
        except ChildProcessError:
            return True

    def kill(self):
        """Ends it with all that it started, and returns its status."""
        if self._child.returncode is None:
            try:
                os.killpg(self.pid, signal.SIGKILL)
            except (ProcessLookupError, PermissionError):
                pass
        return self._child.wait()


def _no_number(word):
    """Refuses ``NaN`` and infinities, which Python reads, and nobody else."""
    raise ValueError(word)


def status_words(status):
    """How a process that owed an answer ended, as the tuner tells it."""
    if status == 0:
        return "ended without an answer"
    if status > 0:
        shell = " (a shell found no such command)" if status == 127 else ""
        return f"ended with code {status}{shell or ' without an answer'}"
    try:
        number = signal.Signals(-status)
    except ValueError:
        return f"was killed by signal {-status}"
    meaning = _MEANINGS.get(number)
    return f"was killed by {number.name} ({meaning})" if meaning else f"was killed by signal {-status}"
