"""What is refused: an exception with the code and the words of the command line, and nothing was written."""

import numpy
import pytest

import tilewright

PARALLEL_SUM = (
    'schedule(workload: "matmul", params: {"m": 4, "n": 4, "k": 4}, steps: [parallel(loop: "k")])'
)


def refusal(call):
    with pytest.raises(tilewright.Error) as found:
        call()
    assert found.value.code in tilewright.codes()
    assert str(found.value).startswith(f"error[{found.value.code}]: {found.value.message}")
    return found.value


def test_a_step_that_is_refused():
    for verb in (tilewright.compile, tilewright.check, tilewright.show):
        err = refusal(lambda: verb(PARALLEL_SUM))
        assert err.code == "TW1022"
        assert "script.ron:1:" in str(err) and "rfactor" in err.help
        assert err.data["places"][0]["line"] == 1


def test_files_and_names(tmp_path):
    assert refusal(lambda: tilewright.compile(tmp_path / "none.ron")).code == "TW5001"
    assert "did you mean `matmul`?" in refusal(lambda: tilewright.auto("matmull", target="cpu")).help
    assert refusal(lambda: tilewright.auto("matmul", target="gpu")).code == "TW5024"
    assert refusal(lambda: tilewright.auto("matmul", target="cpu", rows=3)).code == "TW0221"
    assert refusal(lambda: tilewright.auto("matmul", target="cpu", m=True)).code == "TW5071"
    assert refusal(lambda: tilewright.show(PARALLEL_SUM.replace("parallel", "unroll"), "ptx")).code == "TW5012"


class Elsewhere:
    """An array on a device of another kind."""

    def __dlpack_device__(self):
        return (7, 0)

    def __dlpack__(self, **words):
        raise AssertionError("it is refused before")


def frozen(*shape):
    array = numpy.zeros(shape, "float32")
    array.flags.writeable = False
    return array


def overlapping(kernel):
    whole = numpy.zeros(64, "float32")
    return kernel(whole[:16].reshape(4, 4), numpy.zeros((4, 4), "float32"), out=whole[8:24].reshape(4, 4))


@pytest.mark.parametrize(
    ("code", "words", "call"),
    [
        ("TW5071", "takes 2 inputs (`A`, `B`), not 1", lambda k, a, b: k(a)),
        ("TW5071", "takes 2 inputs (`A`, `B`), not 3", lambda k, a, b: k(a, b, a)),
        ("TW5071", "has no input `X`", lambda k, a, b: k(a, X=b)),
        ("TW5071", "`A` is given twice", lambda k, a, b: k(a, A=b)),
        ("TW5071", "one result, and `out` is 2 arrays", lambda k, a, b: k(a, b, out=(a, b))),
        ("TW5071", "`stream` is the handle", lambda k, a, b: k(a, b, stream="first")),
        ("TW5072", "`B` has elements of type f32, not f64", lambda k, a, b: k(a, b.astype("f8"))),
        ("TW5072", "elements of type complex64", lambda k, a, b: k(a.astype("c8"), b)),
        ("TW5072", "elements of type float32", lambda k, a, b: k(a.astype(">f4"), b)),
        ("TW5073", "`B` is K x N, here 6 x 8; this array is 5 x 8", lambda k, a, b: k(a, b[:5])),
        ("TW5073", "this array is 24", lambda k, a, b: k(a.ravel(), b)),
        ("TW5073", "this array is 8 x 4", lambda k, a, b: k(a, b, out=numpy.zeros((8, 4), "f4"))),
        ("TW5074", "strides [1, 4]", lambda k, a, b: k(numpy.asfortranarray(a), b)),
        ("TW5075", "device 0 of DLPack's type 7", lambda k, a, b: k(a, Elsewhere())),
        ("TW5077", "`C` is a result, and this array is read-only", lambda k, a, b: k(a, b, out=frozen(4, 8))),
        ("TW5077", "shares memory with `A`", lambda k, a, b: overlapping(k)),
        ("TW5078", "is no array", lambda k, a, b: k(a, [[1.0]])),
        ("TW2202", "dimension `N` is 0", lambda k, a, b: k(a, b[:, :0].copy())),
        ("TW5008", "no symbolic dimension `Q`", lambda k, a, b: k(a, b, dims={"Q": 1})),
    ],
)
def test_calls(matmul, random, code, words, call):
    a, b = random(4, 6), random(6, 8)
    err = refusal(lambda: call(matmul, a, b))
    assert err.code == code, err
    assert words in err.message


def test_nothing_is_written_by_a_call_that_is_refused(matmul, random):
    out = numpy.full((4, 8), 7, "float32")
    refusal(lambda: matmul(random(4, 6), random(5, 8), out=out))
    assert (out == 7).all()


def test_what_python_raises_stays_what_it_is(matmul, random):
    class Broken:
        @property
        def __dlpack__(self):
            raise RuntimeError("its own words")

    with pytest.raises(RuntimeError, match="its own words"):
        matmul(random(4, 6), Broken())


def test_code_for_a_gpu_on_arrays_of_the_cpu(random):
    try:
        kernel = tilewright.auto("matmul", m=64, n=64, k=64, target="cuda:sm_90a")
    except tilewright.Error as err:
        assert err.code == "TW3001", err
        pytest.skip("NVRTC is not installed")
    assert kernel.target == "cuda:sm_90a" and kernel.resources[0]["registers"] > 0
    err = refusal(lambda: kernel(random(64, 64), random(64, 64)))
    assert err.code == "TW5075" and "compiled for cuda:sm_90a" in err.message
