"""What a reader of the paper finds: its mechanisms on arrays, its distances and complexities by public names."""

import numpy as np
import pytest

import privmeasure as pm
from privmeasure import theory
from privmeasure.errors import ArgumentError

SQUARE = pm.Box([(0, 1), (0, 1)])
X = np.random.default_rng(0).random((2000, 2))


@pytest.mark.parametrize(
    "mechanism",
    [
        pm.PMM.paper(SQUARE, pm.Privacy(1, "replace")),
        pm.PMM.paper(SQUARE, pm.Privacy(1, "add-remove", 2), rows=2000, threads=1),
        pm.PMM(pm.Finite([[0, 1], [1, 0]]), pm.Privacy(1, "replace")),
        pm.PMM(SQUARE, pm.Privacy(1, "replace"), depth=3, max_cells=4),
        pm.PSMM(SQUARE, pm.Privacy(1, "replace"), depth=6, placement="centre"),
        pm.PSMM(SQUARE, pm.Privacy(1, "add-remove")),
    ],
)
def test_a_synthesizer_runs_a_mechanism_with_its_arguments(mechanism):
    synth = pm.Synthesizer.of(mechanism)
    assert synth.mechanism == mechanism
    assert synth.plan(2000) == mechanism.plan(2000)
    rows = synth.fit_sample(X[:, : mechanism.domain.width])
    assert rows.shape == (synth.release_.total, mechanism.domain.width)
    assert synth.release_.plan.privacy == mechanism.privacy
    again = pm.Synthesizer(**synth.get_params())
    assert again.privacy == synth.privacy
    assert again.mechanism == mechanism


def test_the_paper_measures_every_level():
    plan = pm.Synthesizer.of(pm.PMM.paper(SQUARE, pm.Privacy(1, "replace"))).plan(2000)
    assert plan.levels == tuple(range(1, plan.depth + 1))


def test_other_things_are_no_mechanisms():
    with pytest.raises(ArgumentError, match="of takes a PMM or a PSMM, got Box"):
        pm.Synthesizer.of(SQUARE)


def test_names():
    assert set(theory.__all__) <= set(vars(theory))
    assert theory.bounded_lipschitz([3, 0], [0, 3], theory.Line((0.0, 0.5))) == pytest.approx(1.5)
    assert theory.laplacian_complexity(theory.Grid((2, 2), (0.5, 0.5)), draws=5, seed=1)[0] > 0
