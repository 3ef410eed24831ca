"""Arrays that kernels take and make."""

import sys
from typing import NamedTuple


class Array(NamedTuple):
    """What a kernel takes or makes: its name in the workload, the type of its elements, and its extents, of which those that
    depend on symbolic dimensions are expressions."""

    name: str
    dtype: str
    shape: tuple


def _numpy_dtype(name):
    import numpy

    if name.startswith(("bfloat", "float8")):
        import ml_dtypes

        return numpy.dtype(getattr(ml_dtypes, name))
    return numpy.dtype(name)


def empty(like, shape, dtype, ordinal):
    """Memory for a result beside an array, on the CPU or on the GPU of a number."""
    if ordinal is None:
        import numpy

        return numpy.empty(shape, _numpy_dtype(dtype))
    cupy = sys.modules.get("cupy")
    if cupy is not None and not dtype.startswith(("bfloat", "float8")):
        with cupy.cuda.Device(ordinal):
            return cupy.empty(shape, dtype)
    torch = sys.modules.get("torch")
    if torch is not None:
        return torch.empty(shape, dtype=getattr(torch, dtype), device=f"cuda:{ordinal}")
    raise TypeError(f"no library is loaded that makes arrays of {dtype} on a GPU: give the results as `out=`")


def hand_over(like, result):
    """A result as an array of the library of another: its memory stays where it is."""
    namespace = getattr(like, "__array_namespace__", None)
    if namespace is None or type(result) is type(like):
        return result
    return namespace().from_dlpack(result)
