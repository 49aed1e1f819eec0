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
    "detectors.loss-spike.opened": (
        "{signal} jumps to {value:.4g} where {level:.4g} was expected (z = {z:.1f})",
        "{signal} 跃升至 {value:.4g}，预期为 {level:.4g}（z = {z:.1f}）",
    ),
    "detectors.loss-spike.stays": (
        "{signal} jumped to {value:.4g} from {level:.4g} and is still {percent:.3g} % above after {rows} rows",
        "{signal} 从 {level:.4g} 跃升至 {value:.4g}，{rows} 行后仍高出 {percent:.3g} %",
    ),
    "detectors.loss-spike.healed": (
        "{signal} peaked at {peak:.4g} where {level:.4g} was expected and is back on its trend after {rows} rows",
        "{signal} 峰值 {peak:.4g}（预期 {level:.4g}），{rows} 行后回到原趋势",
    ),
    "detectors.loss-spike.lasting": (
        "{signal} jumped from {level:.4g} (peak {peak:.4g}) and did not fully recover: still {percent:.3g} % above after {rows} rows",
        "{signal} 从 {level:.4g} 跃升（峰值 {peak:.4g}）且未完全恢复：{rows} 行后仍高出 {percent:.3g} %",
    ),
    "detectors.divergence.opened": (
        "{signal} rises to {value:.4g}, above the best level it had ({best:.4g})",
        "{signal} 升至 {value:.4g}，高于其曾达到的最佳水平（{best:.4g}）",
    ),
    "detectors.divergence.lost": (
        "{signal} stands at {value:.4g} against {best:.4g} at its best and does not come back",
        "{signal} 停在 {value:.4g}，最佳时为 {best:.4g}，没有恢复",
    ),
    "detectors.divergence.healed": (
        "{signal} rose to {peak:.4g} against {best:.4g} at its best and came back after {rows} rows",
        "{signal} 升至 {peak:.4g}（最佳 {best:.4g}），{rows} 行后恢复",
    ),
    "detectors.not-learning.zero-rate": (
        "the learning rate is exactly 0 from step {step} on, and {signal} does not fall",
        "学习率从第 {step} 步起恰为 0，{signal} 不再下降",
    ),
    "detectors.not-learning.uniform": (
        "{signal} stands at {value:.4g} = ln {classes} with hardly any noise: the output does not depend on the input",
        "{signal} 停在 {value:.4g} = ln {classes}，几乎没有噪声：输出与输入无关",
    ),
    "detectors.not-learning.untrained": (
        "{signal} stands at {value:.4g} nats, an untrained model's level (it began at {start:.4g}, {rows} rows)",
        "{signal} 停在 {value:.4g} 纳特，即未训练模型的水平（起始 {start:.4g}，共 {rows} 行）",
    ),
    "detectors.not-learning.absurd": (
        "{signal} stands at {value:.4g} nats, above the logarithm of any vocabulary, and does not fall",
        "{signal} 停在 {value:.4g} 纳特，高于任何词表的对数，且不下降",
    ),
    "detectors.bad-start.opened": (
        "{signal} begins at {value:.4g}, worse than a uniform guess over any vocabulary (it would take {vocabulary:.2g} words)",
        "{signal} 起始为 {value:.4g}，比任何词表上的均匀猜测都差（相当于 {vocabulary:.2g} 个词）",
    ),
    "detectors.bad-start.stays": ("{signal} began at {value:.4g} and is still at {now:.4g}", "{signal} 起始为 {value:.4g}，目前仍为 {now:.4g}"),
    "detectors.bad-start.healed": ("{signal} began at {value:.4g} and fell to half of it", "{signal} 起始为 {value:.4g}，已降至其一半"),
    "detectors.oscillation.opened": (
        "{signal} swings {width:.3g} times wider than its calm noise, on both sides of its level",
        "{signal} 在其水平上下摆动，幅度为平静噪声的 {width:.3g} 倍",
    ),
    "detectors.oscillation.healed": ("{signal} swung {width:.3g} times wider than its calm noise, and is calm again", "{signal} 曾以平静噪声 {width:.3g} 倍的幅度摆动，现已平静"),
}
