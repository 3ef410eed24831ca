"""Kernels on a CPU, called on the arrays of NumPy and of whatever else has their interface or DLPack."""

import gc
import multiprocessing
import threading
import weakref

import numpy
import pytest

import tilewright

TWO_RESULTS = """workload(
    name: "extremes",
    about: "The least and the greatest of each row.",
    params: {"m": size(default: 4), "n": size(default: 8)},
    axes: {"i": "m", "j": "n"},
    tensors: {
        "X": input(dtype: "f32", shape: ["m", "n"]),
        "low": output(dtype: "f32", shape: ["m"]),
        "high": output(dtype: "f32", shape: ["m"]),
    },
    stages: ["low[i] min= X[i, j]", "high[i] max= X[i, j]"],
)
"""


def test_what_a_kernel_says_of_itself(matmul):
    assert repr(matmul) == "<Kernel matmul(A: f32[M, K], B: f32[K, N]) -> C: f32[M, N] for cpu>"
    assert matmul.name == "matmul" and matmul.target == "cpu" and matmul.dims == ["M", "N", "K"]
    assert matmul.inputs[1] == tilewright.Array("B", "f32", ("K", "N"))
    assert matmul.outputs == (("C", "f32", ("M", "N")),)
    assert "void" in matmul.source and matmul.resources == [] and matmul.rule is None
    assert matmul.output_shapes((2, 3), (3, 5)) == ((2, 5),)
    again = tilewright.compile(matmul.script)
    assert again.source == matmul.source


def test_any_size(matmul, random):
    for m, n, k in [(1, 1, 1), (7, 5, 3), (64, 32, 16)]:
        a, b = random(m, k), random(k, n)
        numpy.testing.assert_allclose(matmul(a, b), a @ b, rtol=1e-4, atol=1e-5)


def test_results_that_are_given_and_names(matmul, random):
    a, b, out = random(4, 6), random(6, 8), numpy.zeros((4, 8), "float32")
    assert matmul(a, b, out=out) is out
    numpy.testing.assert_allclose(out, a @ b, rtol=1e-4)
    numpy.testing.assert_array_equal(matmul(B=b, A=a), out)
    numpy.testing.assert_array_equal(matmul(a, B=b), out)


def test_parts_of_arrays(matmul, random):
    # Rows are no copy where they follow each other; a dimension of one element may have any stride.
    whole = random(10, 6)
    b = random(6, 1)
    numpy.testing.assert_allclose(matmul(whole[2:5], b), whole[2:5] @ b, rtol=1e-4)
    numpy.testing.assert_allclose(matmul(whole[::20], b), whole[:1] @ b, rtol=1e-4)


def test_several_results(tmp_path, random):
    path = tmp_path / "extremes.ron"
    path.write_text(TWO_RESULTS)
    kernel = tilewright.auto(path, m=16, n=32, target="cpu")
    x = random(16, 32)
    low, high = kernel(x)
    numpy.testing.assert_array_equal(low, x.min(1))
    numpy.testing.assert_array_equal(high, x.max(1))
    out = (numpy.empty(16, "float32"), numpy.empty(16, "float32"))
    kernel(x, out=out)
    numpy.testing.assert_array_equal(out[1], high)


def test_fused_layer(random):
    kernel = tilewright.auto("gated_mlp", m=32, width=64, hidden=96, target="cpu")
    x, weight = random(32, 64), random(64)
    w, v, u = random(64, 96) / 8, random(64, 96) / 8, random(96, 64) / 8
    normed = x / numpy.sqrt((x * x).mean(1, keepdims=True) + 1e-6) * weight
    gate = normed @ w
    wanted = x + (gate / (1 + numpy.exp(-gate)) * (normed @ v)) @ u
    numpy.testing.assert_allclose(kernel(x, weight, w, v, u), wanted, rtol=2e-3, atol=2e-3)


def test_many_threads_call_one_kernel(random):
    # The kernel has temporaries, and each call has its own.
    kernel = tilewright.auto("gated_mlp", m=32, width=64, hidden=96, target="cpu")
    inputs = [random(*it.shape) for it in kernel.inputs]
    wanted = kernel(*inputs)
    found = []
    threads = [threading.Thread(target=lambda: found.extend(kernel(*inputs) for _ in range(20))) for _ in range(4)]
    for it in threads:
        it.start()
    for it in threads:
        it.join()
    assert len(found) == 80 and all(numpy.array_equal(it, wanted) for it in found)


def test_a_forked_process(matmul, random):
    a, b = random(16, 16), random(16, 16)
    wanted = matmul(a, b)
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe()
    child = context.Process(target=lambda: theirs.send(numpy.array_equal(matmul(a, b), wanted)))
    child.start()
    assert ours.poll(60) and ours.recv()
    child.join()


def test_small_types(random):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    kernel = tilewright.auto("softmax", m=8, n=64, dtype=ml_dtypes.bfloat16, target="cpu")
    x = random(8, 64).astype(ml_dtypes.bfloat16)
    found = kernel(x)
    assert found.dtype == ml_dtypes.bfloat16
    wanted = numpy.exp(x.astype("float64"))
    numpy.testing.assert_allclose(found.astype("float64"), wanted / wanted.sum(1, keepdims=True), rtol=1e-2)


class Producer:
    """An array that is told by DLPack alone."""

    def __init__(self, array, versioned=True):
        self.array, self.versioned = array, versioned

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()

    def __dlpack__(self, **words):
        if not self.versioned and "max_version" in words:
            raise TypeError("an older producer")
        return self.array.__dlpack__(**words)


@pytest.mark.parametrize("versioned", [True, False])
def test_dlpack(matmul, random, versioned):
    a, b = random(4, 6), random(6, 8)
    found = matmul(Producer(a, versioned), Producer(b, versioned))
    numpy.testing.assert_allclose(found, a @ b, rtol=1e-4)
    out = numpy.zeros((4, 8), "float32")
    matmul(a, b, out=Producer(out, versioned))
    numpy.testing.assert_array_equal(found, out)


def test_dlpack_gives_memory_back(matmul, random):
    class Owner(numpy.ndarray):
        """An array that tells when it goes."""

    a, b = random(4, 6).view(Owner), random(6, 8)
    gone = weakref.ref(a)
    matmul(Producer(a), b)
    del a
    gc.collect()
    assert gone() is None


def test_any_array_interface(matmul, random):
    class Interface:
        def __init__(self, array):
            self.array = array
            self.__array_interface__ = array.__array_interface__

    a, b = random(4, 6), random(6, 8)
    numpy.testing.assert_array_equal(matmul(Interface(a), Interface(b)), matmul(a, b))


def test_jax(matmul, random):
    jax = pytest.importorskip("jax")
    a, b = random(4, 6), random(6, 8)
    found = matmul(jax.numpy.asarray(a), jax.numpy.asarray(b))
    assert isinstance(found, jax.Array)
    numpy.testing.assert_allclose(found, a @ b, rtol=1e-4)
