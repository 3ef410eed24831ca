"""Kernels on a GPU, called from PyTorch, CuPy and JAX. Without a GPU, and without the library, each test says that it was skipped."""

import pytest

import tilewright

torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("PyTorch sees no GPU", allow_module_level=True)

DEVICE = "cuda"


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(1)
    torch.backends.cuda.matmul.allow_tf32 = False


def random(*shape, dtype=torch.float32, scale=1.0):
    return (torch.randn(*shape, device=DEVICE) * scale).to(dtype)


def test_matmul_f16():
    kernel = tilewright.auto("matmul", m=512, n=768, k=256, dtype=torch.float16)
    assert kernel.target.startswith("cuda:sm_") and kernel.resources
    a, b = random(512, 256, dtype=torch.float16), random(256, 768, dtype=torch.float16)
    found = kernel(a, b)
    assert found.device == a.device
    torch.testing.assert_close(found.float(), a.float() @ b.float(), rtol=1e-2, atol=1e-2)


def test_softmax():
    kernel = tilewright.auto("softmax", m=300, n=1000)
    x = random(300, 1000)
    torch.testing.assert_close(kernel(x), torch.softmax(x, 1), rtol=1e-5, atol=1e-6)


def test_fused_layer():
    kernel = tilewright.auto("matmul_bias_gelu_residual", m=512, n=1024, k=256)
    a, b = random(512, 256, dtype=torch.float16), random(256, 1024, dtype=torch.float16, scale=0.06)
    bias, residual = random(1024, dtype=torch.float16), random(512, 1024, dtype=torch.float16)
    found = kernel(a, b, bias, residual)
    wanted = torch.nn.functional.gelu(a.float() @ b.float() + bias.float()) + residual.float()
    torch.testing.assert_close(found.float(), wanted, rtol=2e-2, atol=2e-2)


def test_temporaries_on_two_streams():
    # Three kernels with rows in global memory between them: each stream has its own.
    kernel = tilewright.auto("gated_mlp", m=256, width=512, hidden=1024, dtype="bf16")
    arguments = [
        random(*it.shape, dtype=torch.bfloat16, scale=0.05 if len(it.shape) == 2 and it.name != "X" else 1.0)
        for it in kernel.inputs
    ]
    wanted = kernel(*arguments)
    torch.cuda.synchronize()
    found = []
    streams = [torch.cuda.Stream() for _ in range(2)]
    for _ in range(5):
        for stream in streams:
            with torch.cuda.stream(stream):
                found.append(kernel(*arguments))
    torch.cuda.synchronize()
    assert all(torch.equal(it, wanted) for it in found)


def test_the_stream_of_the_caller():
    kernel = tilewright.auto("matmul", m=64, n=64, k=64)
    a, b, out = random(64, 64), random(64, 64), torch.zeros(64, 64, device=DEVICE)
    stream = torch.cuda.Stream()
    # The first call loads the kernel, which may wait for the device.
    kernel(a, b, out=out)
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        # The device is busy for a while; what runs on another stream would see `a` before it is doubled.
        torch.cuda._sleep(50_000_000)
        a.mul_(2)
        assert kernel(a, b, out=out) is out
        assert not stream.query(), "the call does not wait"
    stream.synchronize()
    torch.testing.assert_close(out, a @ b, rtol=1e-4, atol=1e-4)
    again = torch.zeros_like(out)
    torch.cuda.synchronize()
    for handle in (stream, stream.cuda_stream):
        kernel(a, b, out=again, stream=handle)
        stream.synchronize()
        torch.testing.assert_close(again, out)


def test_a_recorded_graph():
    kernel = tilewright.auto("matmul", m=64, n=64, k=64)
    a, b, out = random(64, 64), random(64, 64), torch.zeros(64, 64, device=DEVICE)
    kernel(a, b, out=out)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        kernel(a, b, out=out)
    a.copy_(random(64, 64))
    graph.replay()
    torch.cuda.synchronize()
    torch.testing.assert_close(out, a @ b, rtol=1e-4, atol=1e-4)


def test_any_size():
    kernel = tilewright.auto("softmax", m="M", n=256)
    for rows in (1, 7, 100):
        x = random(rows, 256)
        torch.testing.assert_close(kernel(x), torch.softmax(x, 1), rtol=1e-5, atol=1e-6)


def test_compiled_module():
    kernel = tilewright.auto("matmul", m=64, n=128, k=32)
    op = kernel.to_torch_op(
        "tilewright_cuda_test::matmul", backward=lambda gradient, a, b: (gradient @ b.t(), a.t() @ gradient)
    )

    class Layer(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(random(32, 128))

        def forward(self, x):
            return torch.relu(op(2 * x, self.weight)) + 1

    layer = Layer()
    compiled = torch.compile(layer, fullgraph=True)
    x = random(64, 32)
    wanted = torch.relu((2 * x) @ layer.weight) + 1
    found = compiled(x)
    torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-4)
    wanted.sum().backward()
    by_torch = layer.weight.grad.clone()
    layer.weight.grad = None
    found.sum().backward()
    torch.testing.assert_close(layer.weight.grad, by_torch, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize(
    ("code", "spoil"),
    [
        ("TW5075", lambda a: a.cpu()),
        ("TW5074", lambda a: a.t()),
        ("TW5072", lambda a: a.double()),
        ("TW5073", lambda a: a[:32].contiguous()),
    ],
)
def test_refused_before_launch(code, spoil):
    kernel = tilewright.auto("matmul", m=64, n=64, k=64)
    a, b = random(64, 64), random(64, 64)
    with pytest.raises(tilewright.Error) as found:
        kernel(spoil(a), b)
    assert found.value.code == code
    torch.cuda.synchronize()


def test_an_address_that_vectors_cannot_start_at():
    kernel = tilewright.auto("softmax", m=16, n=1024)
    x = random(16 * 1024 + 1)[1:].view(16, 1024)
    with pytest.raises(tilewright.Error) as found:
        kernel(x)
    assert found.value.code == "TW5076"


def test_cupy():
    cupy = pytest.importorskip("cupy")
    kernel = tilewright.auto("matmul", m=64, n=64, k=64)
    a, b = (cupy.random.rand(64, 64, dtype=cupy.float32) for _ in range(2))
    found = kernel(a, b)
    assert isinstance(found, cupy.ndarray)
    cupy.testing.assert_allclose(found, a @ b, rtol=1e-3)
    with cupy.cuda.Stream(non_blocking=True) as stream:
        found = kernel(a, b)
        stream.synchronize()
    cupy.testing.assert_allclose(found, a @ b, rtol=1e-3)


def test_jax():
    jax = pytest.importorskip("jax")
    if jax.default_backend() != "gpu":
        pytest.skip("JAX sees no GPU")
    kernel = tilewright.auto("matmul", m=64, n=64, k=64)
    a, b = (jax.random.uniform(jax.random.key(n), (64, 64)) for n in range(2))
    found = kernel(a, b)
    assert isinstance(found, jax.Array)
    with jax.default_matmul_precision("highest"):
        assert jax.numpy.allclose(found, a @ b, rtol=1e-3)


def test_tune(tmp_path):
    seen = []
    found = tilewright.tune(
        "softmax",
        m=512,
        n=1024,
        log=tmp_path / "softmax.twlog",
        trials=4,
        finalists=2,
        rounds=3,
        progress=seen.append,
    )
    assert found.winner and seen[-1]["trials"] == 4
    x = random(512, 1024)
    torch.testing.assert_close(found.kernel()(x), torch.softmax(x, 1), rtol=1e-5, atol=1e-6)
