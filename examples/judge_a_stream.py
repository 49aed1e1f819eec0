"""Judge numbers from anywhere, as they come: frames in, findings and incidents out.

python examples/judge_a_stream.py
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from poise.causes.base import Case
from poise.diagnose import diagnose
from poise.messages import render
from poise.presets import pretrain
from poise.records import Column, Finding, Frame, RunInfo


def training() -> Iterator[tuple[int, float, float]]:
    """Step, loss and gradient norm of a made-up run that breaks at step 300."""
    rng = np.random.default_rng(0)
    for step in range(400):
        broken = step >= 300
        loss = (3 + 5 / (1 + step / 20)) * (1.6 if broken else 1.0) * np.exp(0.01 * rng.standard_normal())
        yield step, float(loss), float((20.0 if broken else 0.5) * np.exp(0.2 * rng.standard_normal()))


def main() -> None:
    """Print each finding at the step at which it could be known, then the causes."""
    watch = pretrain()
    seen: dict[str, list[float]] = {"step": [], "loss": [], "grad_norm": []}
    for step, loss, norm in training():
        for name, value in (("step", step), ("loss", loss), ("grad_norm", norm)):
            seen[name].append(value)
        now = np.array([step])
        frame = Frame({"loss": Column(now, np.array([loss])), "grad_norm": Column(now, np.array([norm]))})
        for record in watch.update(frame):
            if isinstance(record, Finding):
                print(f"step {step}: {record.severity}: {render(record.message)}")

    steps = np.array(seen["step"], np.int64)
    columns = {name: Column(steps, np.array(seen[name])) for name in ("loss", "grad_norm")}
    for incident in watch.incidents:
        print(
            f"\n{incident.kind} ({incident.severity}) since step {incident.onset_step}, first seen in {incident.first_signal}"
        )
        for cause in diagnose(Case(incident, RunInfo("made up", "python"), columns))[:2]:
            print(f"  {cause.priority} {cause.cause}: {render(cause.evidence[0])}")


if __name__ == "__main__":
    main()
