"""Searches from Python, whose workers are this interpreter started again."""

import pytest

import tilewright

SPACE = """schedule(
    workload: "matmul",
    params: {"m": 64, "n": 64, "k": 64},
    knobs: {"rows": [2, 4], "columns": [16, 32]},
    steps: [
        split(loop: "i", into: {"io": None, "ii": "rows"}),
        split(loop: "j", into: {"jo": None, "ji": "columns"}),
        reorder(order: ["jo", "io", "k", "ii", "ji"]),
        vectorize(loop: "ji"),
    ],
)
"""
FEW = {"finalists": 0, "rounds": 3, "baseline": False, "compilers": 1}


def test_a_search_and_its_replay(tmp_path, capsys, random):
    log = tmp_path / "matmul.twlog"
    found = tilewright.tune(SPACE, log=log, trials=3, **FEW)
    assert found.log == log and found.target == "cpu" and set(found.winner["decisions"]) == {"rows", "columns"}
    lines = capsys.readouterr().err.splitlines()
    assert lines[-1].startswith("3/3 trials"), lines
    kernel = found.kernel()
    assert f'"ii": {found.winner["decisions"]["rows"]}' in kernel.script
    a, b = random(64, 64), random(64, 64)
    assert abs(kernel(a, b) - a @ b).max() < 1e-3
    (run,) = tilewright.replay(log)
    assert run["ok"] and run["lines"] == [{"level": "sources", "result": "3 of 3 identical"}]


def test_progress_that_ends_a_search(tmp_path):
    def enough(progress):
        if progress["trials"] == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tilewright.tune(SPACE, log=tmp_path / "ended.twlog", trials=4, progress=enough, **FEW)
    (run,) = tilewright.replay(tmp_path / "ended.twlog")
    assert run["ok"] and run["trials"] < 4


def test_a_workload_and_its_space(tmp_path):
    seen = []
    log = tmp_path / "matmul.twlog"
    found = tilewright.tune("matmul", m=64, n=64, k=32, target="cpu", log=log, trials=2, progress=seen.append, **FEW)
    assert seen[-1]["trials"] == 2 and found.summary["best"]["seconds"] > 0
    assert found.kernel().outputs == (("C", "f32", (64, 64)),)


def test_refusals(tmp_path):
    with pytest.raises(tilewright.Error) as err:
        tilewright.replay(tmp_path / "none")
    assert "no such file" in err.value.message
    with pytest.raises(tilewright.Error, match="no level `all`"):
        tilewright.replay(tmp_path / "none", level="all")
