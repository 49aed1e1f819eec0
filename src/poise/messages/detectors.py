"""What detectors say: id -> (English, Chinese)."""

from __future__ import annotations

TEXTS: dict[str, tuple[str, str]] = {
    "detectors.repeated": ("{count} times, last at step {last}", "共 {count} 次，最近一次在第 {last} 步"),
    "detectors.periodic": ("{count} times, every {period} steps, last at step {last}", "共 {count} 次，每 {period} 步一次，最近一次在第 {last} 步"),
    "detectors.non-finite.opened": ("{signal} is not finite from step {step} on", "{signal} 从第 {step} 步起不是有限值"),
    "detectors.non-finite.first-row": ("{signal} is not finite from its very first row, step {step}", "{signal} 从第一行（第 {step} 步）起就不是有限值"),
    "detectors.non-finite.masked": (
        "{signal} reads exactly 0 from step {step} on while the gradient norm is not finite: a NaN that the trainer's filter hides",
        "{signal} 从第 {step} 步起恰为 0，而梯度范数不是有限值：训练器的过滤器掩盖了 NaN",
    ),
    "detectors.non-finite.healed": ("{signal} was not finite in {rows} rows from step {step} on and is finite again", "{signal} 从第 {step} 步起有 {rows} 行不是有限值，现已恢复"),
}
