from collections.abc import Callable, Mapping, Sequence
from typing import Any

from . import Array

class Kernel:
    """A compiled kernel. ``kernel(a, b)`` runs it on arrays and returns its results.

    Arrays are those of NumPy, PyTorch, CuPy and JAX, and whatever else has ``__dlpack__``, ``__cuda_array_interface__`` or
    ``__array_interface__``; none is copied. Shape, strides, type of elements, device and alignment are checked before anything runs.
    """

    @property
    def name(self) -> str:
        """The name of the workload."""

    @property
    def target(self) -> str:
        """What it is compiled for: ``cpu``, or ``cuda`` with an architecture."""

    @property
    def script(self) -> str:
        """The schedule as a script of plain steps, which ``compile`` takes."""

    @property
    def source(self) -> str:
        """The emitted C or CUDA C++."""

    @property
    def resources(self) -> list[dict[str, Any]]:
        """What each kernel needs of a multiprocessor, as ptxas tells: ``registers``, ``spill_store_bytes`` and so on."""

    @property
    def notes(self) -> list[str]:
        """What the schedule asks for in vain."""

    @property
    def rule(self) -> str | None:
        """The rule that made the schedule, where ``auto`` did."""

    @property
    def reasons(self) -> list[str]:
        """Why the steps of that schedule are what they are."""

    @property
    def inputs(self) -> tuple[Array, ...]:
        """The arrays that it takes, in their order."""

    @property
    def outputs(self) -> tuple[Array, ...]:
        """The arrays that it makes, in their order."""

    @property
    def dims(self) -> list[str]:
        """The symbolic dimensions, whose values are those of the arrays."""

    def __call__(
        self,
        *arrays: Any,
        out: Any = None,
        stream: Any = None,
        dims: Mapping[str, int] | None = None,
        **named: Any,
    ) -> Any:
        """Runs it on the inputs, by position or by name, and returns the result, or a tuple of several.

        Results are written to ``out``, an array or a tuple of them, or to new ones of the library of the first input. On a GPU the work
        is started on ``stream`` (a handle, or an object of PyTorch's, CuPy's or another library's that has one), else on the one that is
        current in the library of the inputs, and the call does not wait for it. ``dims`` are values of symbolic dimensions that no array has.
        """

    def output_shapes(
        self, *shapes: Sequence[int], dims: Mapping[str, int] | None = None
    ) -> tuple[tuple[int, ...], ...]:
        """The extents of the results for inputs of these extents."""

    def to_torch_op(self, name: str, *, backward: Callable[..., Any] | None = None) -> Any:
        """Registers it as the operator ``namespace::name`` of PyTorch, which ``torch.compile`` takes whole.

        ``backward`` is called with the gradients of the results and then the inputs, and returns the gradients of the inputs.
        """

def codes() -> list[str]:
    """The codes of all refusals, which ``Error.code`` is one of."""
