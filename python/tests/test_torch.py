"""Operators of PyTorch on a CPU. Where PyTorch is not installed, the tests say that they were skipped."""

import pytest

import tilewright

torch = pytest.importorskip("torch")


@pytest.fixture(scope="module")
def product():
    return tilewright.auto("matmul", m=64, n=128, k=32, target="cpu")


@pytest.fixture(scope="module")
def op(product):
    return product.to_torch_op(
        "tilewright_test::product", backward=lambda gradient, a, b: (gradient @ b.t(), a.t() @ gradient)
    )


def test_tensors(product):
    a, b, out = torch.randn(64, 32), torch.randn(32, 128), torch.empty(64, 128)
    found = product(a, b)
    assert isinstance(found, torch.Tensor)
    torch.testing.assert_close(found, a @ b, rtol=1e-4, atol=1e-4)
    assert product(a, b, out=out) is out and torch.equal(out, found)
    torch.testing.assert_close(product(torch.nn.Parameter(a), b), found)


@pytest.mark.parametrize(
    ("code", "spoil"),
    [
        ("TW5072", lambda a: a.double()),
        ("TW5072", lambda a: torch.complex(a, a)),
        ("TW5073", lambda a: a[:8]),
        ("TW5074", lambda a: a.t().contiguous().t()),
        ("TW5075", lambda a: a.to("meta")),
    ],
)
def test_refused(product, code, spoil):
    with pytest.raises(tilewright.Error) as found:
        product(spoil(torch.randn(64, 32)), torch.randn(32, 128))
    assert found.value.code == code


def test_an_operator_keeps_the_rules_of_pytorch(op):
    torch.library.opcheck(op, (torch.randn(64, 32), torch.randn(32, 128)))


def test_a_compiled_module_and_its_gradients(op):
    weight = torch.nn.Parameter(torch.randn(32, 128))
    x = torch.randn(64, 32)

    def layer(x):
        return torch.relu(op(2 * x, weight)) + 1

    wanted = torch.relu((2 * x) @ weight) + 1
    found = torch.compile(layer, fullgraph=True, backend="aot_eager")(x)
    torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-4)
    (by_torch,) = torch.autograd.grad(wanted.sum(), weight)
    (ours,) = torch.autograd.grad(found.sum(), weight)
    torch.testing.assert_close(ours, by_torch, rtol=1e-3, atol=1e-3)


def test_symbolic_sizes():
    script = 'schedule(workload: "matmul", steps: [])'
    op = tilewright.compile(script, m="M", n="N", k="K", target="cpu").to_torch_op("tilewright_test::any_size")
    compiled = torch.compile(lambda a, b: op(a, b) + 1, fullgraph=True, dynamic=True, backend="aot_eager")
    for n in (3, 5):
        a, b = torch.randn(n, n + 1), torch.randn(n + 1, n + 2)
        torch.testing.assert_close(compiled(a, b), a @ b + 1, rtol=1e-4, atol=1e-4)
