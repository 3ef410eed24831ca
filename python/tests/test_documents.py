"""The examples of the documents, run: Python blocks of README and manual, and the cells of the notebook."""

import importlib.util
import json
import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).parents[2]


def blocks():
    for page in ("README.md", "python/README.md", "docs/src/python.md"):
        text = (ROOT / page).read_text()
        for n, found in enumerate(re.finditer(r"^```python(\S*)\n(.*?)^```", text, re.M | re.S)):
            yield pytest.param(found[1].strip(","), found[2], id=f"{page}-{n}")


@pytest.mark.parametrize(("needs", "source"), list(blocks()))
def test_block(needs, source):
    if needs == "gpu":
        torch = pytest.importorskip("torch")
        if not torch.cuda.is_available():
            pytest.skip("PyTorch sees no GPU")
    elif needs:
        pytest.importorskip(needs)
    exec(compile(source, "block", "exec"), {"__name__": "block"})


def test_notebook():
    notebook = json.loads((ROOT / "python/examples/first_kernel.ipynb").read_text())
    names = {"__name__": "notebook"}
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            exec(compile("".join(cell["source"]), cell["id"], "exec"), names)


def test_stubs_name_what_there_is():
    package = pathlib.Path(importlib.util.find_spec("tilewright").origin).parent
    stub = (package / "__init__.pyi").read_text()
    import tilewright

    for name in tilewright.__all__:
        assert re.search(rf"^(def|class) {name}\b|import .* as {name}$", stub, re.M), name
    assert (package / "py.typed").is_file()
    kernel = (package / "_tilewright.pyi").read_text()
    for name in (it for it in dir(tilewright.Kernel) if not it.startswith("_")):
        assert f"def {name}(" in kernel, name


def test_pages_about_calls_say_what_is_raised(matmul, random):
    import numpy

    import tilewright

    a, b = random(4, 6), random(6, 8)
    calls = {
        "TW5071": lambda: matmul(a),
        "TW5072": lambda: matmul(a, b.astype("f8")),
        "TW5073": lambda: matmul(a, b[:5]),
        "TW5074": lambda: matmul(numpy.asfortranarray(a), b),
        "TW5078": lambda: matmul(a, []),
    }
    for code, call in calls.items():
        with pytest.raises(tilewright.Error) as err:
            call()
        assert str(err.value) in (ROOT / f"docs/src/errors/{code}.md").read_text()
