import pytest

from poise import presets
from poise.detectors.base import Example
from poise.detectors.field_rules import FIELD
from poise.records import Finding, RunInfo
from poise.watch import Watch

FIRES = [(make, example) for make in FIELD for example in make.fires_on]
QUIET = [(make, example) for make in FIELD for example in make.quiet_on]


@pytest.mark.parametrize(("make", "example"), FIRES, ids=[e.title for _, e in FIRES])
@pytest.mark.parametrize("rows", [1, 7, 10**6])
def test_a_rule_of_thumb_fires_where_it_says(make: type, example: Example, rows: int) -> None:
    watch = Watch((make(),))
    found = [r for part in example.make().cut(rows) for r in watch.update(part) if isinstance(r, Finding)]
    assert (example.kind, example.onset) in [(f.kind, f.onset) for f in found]


@pytest.mark.parametrize(("make", "example"), QUIET, ids=[e.title for _, e in QUIET])
def test_a_rule_of_thumb_is_quiet_where_it_says(make: type, example: Example) -> None:
    assert Watch((make(),)).update(example.make()) == []


def test_a_language_trainers_loss_is_judged_in_nats() -> None:
    def entropies(info: RunInfo | None) -> set[bool]:
        return {d.entropy for d in presets.pretrain(info).detectors if hasattr(d, "entropy")}

    assert entropies(RunInfo("x", "wandb-binary", trainer="hf")) == {True}
    assert entropies(RunInfo("x", "csv", names={"perplexity": "ppl"})) == {True}
    assert entropies(RunInfo("x", "csv")) == entropies(None) == {False}
