from collections.abc import Callable, Iterable, Mapping
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

from ._tilewright import Kernel as Kernel
from ._tilewright import codes as codes

class Error(Exception):
    """A refusal: ``str()`` of it is the diagnostic as the command line prints it, with its places and its help."""

    code: str
    message: str
    data: dict[str, Any]
    @property
    def help(self) -> str | None:
        """What to do about it, where there is one thing to say."""

class Array(NamedTuple):
    """What a kernel takes or makes. Extents that depend on symbolic dimensions are expressions."""

    name: str
    dtype: str
    shape: tuple[int | str, ...]

class Checked(NamedTuple):
    """A schedule whose steps are legal and whose result can be lowered."""

    target: str
    steps: int
    kernels: tuple[str, ...]
    notes: tuple[str, ...]

class Automatic(NamedTuple):
    """A schedule that was made without search, and why it is what it is."""

    rule: str
    script: str
    reasons: tuple[str, ...]
    refused: tuple[str, ...]

class Tuned:
    """How a search ended."""

    run: str
    log: Path
    target: str
    script: str
    winner: dict[str, Any] | None
    finals: dict[str, Any] | None
    summary: dict[str, Any]
    stopped: str | None
    def kernel(self, *, threads: int = 0) -> Kernel:
        """Compiles the schedule that won."""

def compile(
    script: str | PathLike[str],
    *,
    target: str | None = None,
    threads: int = 0,
    params: Mapping[str, Any] | None = None,
    **sizes: Any,
) -> Kernel:
    """Compiles a schedule, a file or its text, with parameters of its workload and knobs as keywords."""

def auto(
    workload: str | PathLike[str],
    *,
    target: str | None = None,
    threads: int = 0,
    params: Mapping[str, Any] | None = None,
    **sizes: Any,
) -> Kernel:
    """Makes a schedule of a workload without search, and compiles it."""

def auto_script(
    workload: str | PathLike[str],
    *,
    target: str | None = None,
    params: Mapping[str, Any] | None = None,
    **sizes: Any,
) -> Automatic:
    """The schedule that ``auto`` compiles, with the reasons for it."""

def check(
    script: str | PathLike[str],
    *,
    target: str | None = None,
    params: Mapping[str, Any] | None = None,
    **sizes: Any,
) -> Checked:
    """Checks that every step of a schedule is legal and that the result can be lowered."""

def show(
    script: str | PathLike[str],
    emit: str = "ir",
    *,
    target: str | None = None,
    params: Mapping[str, Any] | None = None,
    **sizes: Any,
) -> str:
    """What a schedule makes, as text: ``ir``, ``script``, ``kernel`` or ``source``."""

def tune(
    script: str | PathLike[str],
    *,
    log: str | PathLike[str],
    trials: int = 200,
    seconds: float | None = None,
    seed: int = 1,
    strategy: str | None = None,
    finalists: int = 8,
    rounds: int = 31,
    baseline: bool = True,
    target: str | None = None,
    threads: int = 0,
    compilers: int | None = None,
    devices: Iterable[int] | None = None,
    on: str | None = None,
    gpu: str | None = None,
    measurers: int | None = None,
    worker_cmd: str | Iterable[str] = (),
    compile_cmd: str | None = None,
    dims: Mapping[str, int] | None = None,
    progress: bool | Callable[[dict[str, Any]], Any] = True,
    params: Mapping[str, Any] | None = None,
    **sizes: Any,
) -> Tuned:
    """Searches the space of a script, or that of ``auto`` around a workload, for the fastest schedule."""

def replay(
    log: str | PathLike[str],
    *,
    level: str = "sources",
    run: str | None = None,
    top: int | None = None,
    trials: Iterable[int] = (),
    compilers: int | None = None,
    devices: Iterable[int] = (0,),
) -> list[dict[str, Any]]:
    """Makes the trials of a log again and compares with what it says: a dictionary for each run."""
