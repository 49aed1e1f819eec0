"""Every code of the bug reports has a symptom and a cause that exist and have a page."""

from __future__ import annotations

import pytest
from bug_codes import CODES

from poise.causes import NAMES
from poise.explain import explain
from poise.signals import KINDS


@pytest.mark.parametrize("code", CODES)
def test_a_code_maps_to_a_symptom_and_a_cause_that_poise_knows(code: str) -> None:
    kind, cause = CODES[code]

    assert kind in KINDS and cause in NAMES
    assert explain(kind) and explain(cause)


def test_all_codes_are_mapped() -> None:
    assert len(CODES) == 36
