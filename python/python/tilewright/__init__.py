"""Kernels from schedules: compiled, checked, and called on the arrays of NumPy, PyTorch, CuPy and JAX.

>>> import numpy, tilewright
>>> kernel = tilewright.auto("matmul", m=64, n=64, k=64, target="cpu")
>>> a, b = (numpy.random.rand(64, 64).astype("float32") for _ in range(2))
>>> bool(numpy.allclose(kernel(a, b), a @ b, rtol=1e-4))
True
"""

import importlib.util
import os
import sys
from pathlib import Path
from typing import NamedTuple

from . import _tilewright
from ._arrays import Array
from ._error import Error
from ._progress import Line as _Line
from ._tilewright import Kernel, codes

__all__ = [
    "Array",
    "Automatic",
    "Checked",
    "Error",
    "Kernel",
    "Tuned",
    "auto",
    "auto_script",
    "check",
    "codes",
    "compile",
    "replay",
    "show",
    "tune",
]


class Checked(NamedTuple):
    """A schedule whose steps are legal and whose result can be lowered."""

    target: str
    steps: int
    kernels: tuple
    notes: tuple


class Automatic(NamedTuple):
    """A schedule that was made without search: the rule that knew the program, the script, why its steps are what they are, and
    what ranked higher and was refused."""

    rule: str
    script: str
    reasons: tuple
    refused: tuple


class Tuned:
    """How a search ended.

    ``winner`` has the trial that won (``trial``, ``seconds``, ``decisions``), or is ``None``; ``finals`` the comparison of the best,
    ``log`` the folder with every trial, ``target`` and ``script`` what was searched.
    """

    def __init__(self, found, params):
        self.run = found["run"]
        self.log = Path(found["log"])
        self.target = found["target"]
        self.script = found["script"]
        self.winner = found["winner"]
        self.finals = found["finals"]
        self.summary = found["summary"]
        self.stopped = found["stopped"]
        self._params = params

    def kernel(self, *, threads=0):
        """Compiles the schedule that won."""
        if self.winner is None:
            raise ValueError("no candidate gave a result")
        params = {**self._params, **self.winner["decisions"]}
        return compile(self.script, target=self.target, threads=threads, params=params)

    def __repr__(self):
        winner = self.winner
        words = "no winner" if winner is None else f"trial {winner['trial']} in {1e6 * winner['seconds']:.1f} us"
        return f"<Tuned {self.run}: {words}, log {self.log}>"


def compile(script, *, target=None, threads=0, params=None, **sizes):
    """Compiles a schedule for ``target`` (``cpu``, ``cuda``, ``cuda:sm_90a``; by default what the script says).

    ``script`` is the path of a file, or the text itself. Keywords are parameters of the workload and knobs, and ``params`` has those
    whose names are no keywords or are those of this function. On a CPU it runs on ``threads`` threads, 0 for one a core.
    """
    path, text = _script(script)
    return _tilewright.compile(path, text, _params(params, sizes), target, threads)


def auto(workload, *, target=None, threads=0, params=None, **sizes):
    """Makes a schedule of a workload without search, and compiles it: by default for the GPU at hand, or the CPU where there is none.

    ``workload`` is the name of one that ships, or a path that begins with ``./`` or ``/``.
    """
    return _tilewright.auto(os.fspath(workload), _params(params, sizes), target, threads)


def auto_script(workload, *, target=None, params=None, **sizes):
    """The schedule that ``auto`` compiles, with the reasons for it. Needs no compiler."""
    made = _tilewright.auto_script(os.fspath(workload), _params(params, sizes), target)
    return Automatic(made["rule"], made["script"], tuple(made["reasons"]), tuple(made["refused"]))


def check(script, *, target=None, params=None, **sizes):
    """Checks that every step of a schedule is legal and that the result can be lowered. Needs no compiler."""
    path, text = _script(script)
    found = _tilewright.check(path, text, _params(params, sizes), target)
    return Checked(found["target"], found["steps"], tuple(found["kernels"]), tuple(found["notes"]))


def show(script, emit="ir", *, target=None, params=None, **sizes):
    """What a schedule makes, as text: ``ir`` (the scheduled program), ``script`` (plain steps), ``kernel`` (the lowered program) or
    ``source`` (C or CUDA C++). Needs no compiler."""
    path, text = _script(script)
    return _tilewright.show(path, text, emit, _params(params, sizes), target)


def tune(
    script,
    *,
    log,
    trials=200,
    seconds=None,
    seed=1,
    strategy=None,
    finalists=8,
    rounds=31,
    baseline=True,
    target=None,
    threads=0,
    compilers=None,
    devices=None,
    on=None,
    gpu=None,
    measurers=None,
    worker_cmd=(),
    compile_cmd=None,
    dims=None,
    progress=True,
    params=None,
    **sizes,
):
    """Searches the space of a script for the fastest schedule, or the space of ``auto`` around a workload.

    Every trial is in the folder ``log`` before it is told; ``tilewright resume`` goes on with one that was ended. ``progress`` is
    called with a dictionary after each trial (``trials``, ``of``, ``best``, ``failed``, ``waits_for``, …); ``True`` writes a line on standard error, and ``False``
    nothing. What it raises, and Ctrl-C, ends the search. Candidates are compiled and measured in processes of their own.

    These are on this machine, with its GPUs ``devices`` (by default the first), or ``on`` a Ray cluster (``ray://host:port``, ``ray://auto``,
    ``ray://local``), where ``gpu`` says on which kind of GPU and ``measurers`` on how many of them. ``worker_cmd`` has commands that are
    started instead of the processes that measure, and ``compile_cmd`` is the one for those that compile.
    """
    path, text = _script(script)
    given = _params(params, sizes)
    line = _Line() if progress is True else None
    seen = line or progress or (lambda _: None)
    workers = _workers(
        compilers, devices, on=on, gpu=gpu, measurers=measurers, worker_cmd=worker_cmd, compile_cmd=compile_cmd
    )
    search = {
        "log": log,
        "trials": trials,
        "seconds": seconds,
        "seed": seed,
        "strategy": strategy,
        "finalists": finalists,
        "rounds": rounds,
        "baseline": baseline,
        "threads": threads,
        "workers": workers,
        "dims": list((dims or {}).items()),
    }
    try:
        found = _tilewright.tune(path, text, given, target, search, seen)
    finally:
        if line is not None:
            line.end()
    # The script of a workload's space has the parameters in it already.
    return Tuned(found, {} if found["is_workload"] else given)


def replay(log, *, level="sources", run=None, top=None, trials=(), compilers=None, devices=(0,)):
    """Makes the trials of a log again and compares with what it says: a dictionary for each run, whose ``ok`` says whether all is the same.

    ``level`` is ``"sources"``, which needs neither compiler nor device, ``"machine code"``, ``"numbers"`` or ``"speed"``. Nothing that the log
    holds is executed.
    """
    again = {
        "level": level,
        "run": run,
        "top": top,
        "trials": list(trials),
        "workers": _workers(compilers, devices),
    }
    return _tilewright.replay(os.fspath(log), again)


def _workers(compilers, devices=None, *, on=None, gpu=None, measurers=None, worker_cmd=(), compile_cmd=None):
    """The processes that compile and measure. They are started by this interpreter, which need not be the one of the shell."""
    if on is None and gpu is not None:
        raise ValueError("`gpu` is the kind of GPU of a cluster, and goes with `on`")
    if on is not None and devices is not None:
        raise ValueError("`devices` are those of this machine, and do not go with `on`")
    return {
        "compilers": compilers,
        "devices": [0] if devices is None else list(devices),
        "on": on,
        "gpu": gpu,
        "measurers": measurers,
        "worker_cmd": [worker_cmd] if isinstance(worker_cmd, str) else list(worker_cmd),
        "compile_cmd": compile_cmd,
        "own": [sys.executable, "-m", "tilewright._worker"],
        "python": sys.executable,
    }


def _script(script):
    """A script as a path and, where it is no file, its text."""
    if isinstance(script, str) and ("(" in script or "\n" in script):
        return "script.ron", script
    return os.fspath(script), None


#: Words for element types, by the names that NumPy and PyTorch have.
_DTYPES = {
    "float16": "f16",
    "bfloat16": "bf16",
    "float32": "f32",
    "float64": "f64",
    "float8_e4m3fn": "f8e4m3",
    "float8_e5m2": "f8e5m2",
    "float8_e8m0fnu": "f8e8m0",
    **{f"int{bits}": f"i{bits}" for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": f"u{bits}" for bits in (8, 16, 32)},
}


def _params(params, sizes):
    """All parameters. A type of NumPy's or PyTorch's stands for its word."""
    return {name: _param(it) for name, it in {**(params or {}), **sizes}.items()}


def _param(value):
    if isinstance(value, (int, float, str)):
        return value
    name = getattr(value, "__name__", None) or getattr(value, "name", None) or str(value)
    return _DTYPES.get(str(name).removeprefix("torch."), value)


def _find_nvrtc():
    """Lets the compiler of CUDA be found that was installed beside this package, unless something else is asked for."""
    if os.environ.get("TILEWRIGHT_NVRTC_DIR"):
        return
    try:
        spec = importlib.util.find_spec("nvidia")
    except (ImportError, ValueError):
        return
    for root in (spec.submodule_search_locations or []) if spec else []:
        found = sorted(Path(root).glob("*/lib/libnvrtc.so*"))
        if found:
            os.environ["TILEWRIGHT_NVRTC_DIR"] = str(found[-1].parent)
            return


_find_nvrtc()
