"""What the tests share."""

import numpy
import pytest

import tilewright


@pytest.fixture(scope="session")
def random():
    """Arrays of normal numbers, always the same."""
    generator = numpy.random.default_rng(1)

    def make(*shape, dtype="float32"):
        return generator.standard_normal(shape).astype(dtype)

    return make


@pytest.fixture(scope="session")
def matmul():
    """A product for all sizes."""
    script = 'schedule(workload: "matmul", steps: [reorder(order: ["i", "k", "j"]), parallel(loop: "i")])'
    return tilewright.compile(script, m="M", n="N", k="K", target="cpu")
