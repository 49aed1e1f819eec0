"""What detectors say: id -> (English, Chinese)."""

from __future__ import annotations

TEXTS: dict[str, tuple[str, str]] = {
    "detectors.repeated": ("{count} times, last at step {last}", "共 {count} 次，最近一次在第 {last} 步"),
    "detectors.periodic": (
        "{count} times, every {period} steps, last at step {last}",
        "共 {count} 次，每 {period} 步一次，最近一次在第 {last} 步",
    ),
    "detectors.non-finite.opened": (
        "{signal} is not finite from step {step} on",
        "{signal} 从第 {step} 步起不是有限值",
    ),
    "detectors.non-finite.first-row": (
        "{signal} is not finite from its very first row, step {step}",
        "{signal} 从第一行（第 {step} 步）起就不是有限值",
    ),
    "detectors.non-finite.masked": (
        "{signal} reads exactly 0 from step {step} on while the gradient norm is not finite: a NaN that the trainer's filter hides",
        "{signal} 从第 {step} 步起恰为 0，而梯度范数不是有限值：训练器的过滤器掩盖了 NaN",
    ),
    "detectors.non-finite.healed": (
        "{signal} was not finite in {rows} rows from step {step} on and is finite again",
        "{signal} 从第 {step} 步起有 {rows} 行不是有限值，现已恢复",
    ),
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
    "detectors.bad-start.stays": (
        "{signal} began at {value:.4g} and is still at {now:.4g}",
        "{signal} 起始为 {value:.4g}，目前仍为 {now:.4g}",
    ),
    "detectors.bad-start.healed": (
        "{signal} began at {value:.4g} and fell to half of it",
        "{signal} 起始为 {value:.4g}，已降至其一半",
    ),
    "detectors.oscillation.opened": (
        "{signal} swings {width:.3g} times wider than its calm noise, on both sides of its level",
        "{signal} 在其水平上下摆动，幅度为平静噪声的 {width:.3g} 倍",
    ),
    "detectors.oscillation.healed": (
        "{signal} swung {width:.3g} times wider than its calm noise, and is calm again",
        "{signal} 曾以平静噪声 {width:.3g} 倍的幅度摆动，现已平静",
    ),
    "detectors.gradient-explosion.opened": (
        "{signal} bursts to {value:.4g} where {level:.4g} was expected ({ratio:.3g} times, z = {z:.1f})",
        "{signal} 突增至 {value:.4g}，预期为 {level:.4g}（{ratio:.3g} 倍，z = {z:.1f}）",
    ),
    "detectors.gradient-explosion.stays": (
        "{signal} rose from {level:.4g} to {value:.4g} and is still more than ten times higher after {rows} rows",
        "{signal} 从 {level:.4g} 升至 {value:.4g}，{rows} 行后仍高出十倍以上",
    ),
    "detectors.gradient-explosion.healed": (
        "{signal} peaked at {value:.4g} where {level:.4g} was expected and was back after {rows} rows",
        "{signal} 峰值 {value:.4g}（预期 {level:.4g}），{rows} 行后恢复",
    ),
    "detectors.gradient-explosion.lasting": (
        "{signal} rose from {level:.4g} (peak {value:.4g}) and has a new level after {rows} rows",
        "{signal} 从 {level:.4g} 升高（峰值 {value:.4g}），{rows} 行后形成新水平",
    ),
    "detectors.gradient-vanishing.time": (
        "{signal} has fallen to {value:.3g} from {start:.3g} while the loss still stands at {loss:.4g}: nothing is learnt",
        "{signal} 从 {start:.3g} 降至 {value:.3g}，而损失仍停在 {loss:.4g}：没有学到东西",
    ),
    "detectors.gradient-vanishing.depth": (
        "{signal} is {value:.3g}, while the deepest layers of {family} have {start:.3g}: the gradient fades towards the input",
        "{signal} 为 {value:.3g}，而 {family} 最深层为 {start:.3g}：梯度向输入方向衰减",
    ),
    "detectors.gradient-vanishing.healed": (
        "{signal} had vanished from step {step} on and is back at {value:.3g}",
        "{signal} 自第 {step} 步起消失，现已恢复到 {value:.3g}",
    ),
    "detectors.loss-scale-collapse.opened": (
        "the loss scale is down to {scale:.4g} after {halvings} skipped steps in a row since step {step}: no update was accepted since",
        "自第 {step} 步起连续跳过 {halvings} 步，损失缩放降至 {scale:.4g}：此后没有接受任何更新",
    ),
    "detectors.loss-scale-collapse.search": (
        "the loss scaler searches its scale at the start: {halvings} skipped steps, now {scale:.4g}",
        "损失缩放器在开始时搜索合适的缩放：跳过 {halvings} 步，现为 {scale:.4g}",
    ),
    "detectors.loss-scale-collapse.healed": (
        "the loss scale had fallen in an unbroken streak from step {step} on; updates are accepted again at {scale:.4g}",
        "损失缩放自第 {step} 步起连续下降；现于 {scale:.4g} 重新接受更新",
    ),
    "detectors.crash.opened": (
        "the run ended at step {step} with {what}: {text}",
        "运行在第 {step} 步因 {what} 结束：{text}",
    ),
    "detectors.crash.oom": (
        "the run ended at step {step}: out of memory ({what})",
        "运行在第 {step} 步结束：显存或内存不足（{what}）",
    ),
    "detectors.crash.signal": (
        "the run was stopped from outside at step {step} ({what})",
        "运行在第 {step} 步被外部终止（{what}）",
    ),
    "detectors.crash.stopped": (
        "the run was stopped by its user at step {step} ({what})",
        "运行在第 {step} 步被用户停止（{what}）",
    ),
    "detectors.crash.survived": (
        "{what} at step {step}, but training went on",
        "第 {step} 步出现 {what}，但训练继续进行",
    ),
    "detectors.update-norm-spike.opened": (
        "{signal} jumps to {value:.4g} where {level:.4g} was expected ({ratio:.3g} times, z = {z:.1f})",
        "{signal} 跃升至 {value:.4g}，预期为 {level:.4g}（{ratio:.3g} 倍，z = {z:.1f}）",
    ),
    "detectors.update-norm-spike.stays": (
        "{signal} rose from {level:.4g} to {value:.4g} ({ratio:.3g} times) and stays there",
        "{signal} 从 {level:.4g} 升至 {value:.4g}（{ratio:.3g} 倍）并停留",
    ),
    "detectors.update-norm-spike.healed": (
        "{signal} peaked at {value:.4g} where {level:.4g} was expected and was back after {rows} rows",
        "{signal} 峰值 {value:.4g}（预期 {level:.4g}），{rows} 行后恢复",
    ),
    "detectors.update-norm-spike.lasting": (
        "{signal} rose from {level:.4g} (peak {value:.4g}) and has a new level after {rows} rows",
        "{signal} 从 {level:.4g} 升高（峰值 {value:.4g}），{rows} 行后形成新水平",
    ),
    "detectors.level-shift.opened": (
        "{signal} has a new level since step {step}: {value:.4g} instead of {former:.4g}",
        "{signal} 自第 {step} 步起有了新水平：{value:.4g}，原为 {former:.4g}",
    ),
    "detectors.resume-jump.opened": (
        "{signal} is {value:.4g} after the restart at step {step}, where {expected:.4g} was reached before ({percent:+.3g} %)",
        "{signal} 在第 {step} 步恢复后为 {value:.4g}，此前已达 {expected:.4g}（{percent:+.3g} %）",
    ),
    "detectors.resume-jump.healed": (
        "{signal} was higher after the restart at step {step} and is back at {value:.4g}",
        "{signal} 在第 {step} 步恢复后升高，现已回到 {value:.4g}",
    ),
    "detectors.resume-jump.rate": (
        "the learning rate is {value:.3g} after the restart at step {step}, and was {expected:.3g} before",
        "第 {step} 步恢复后学习率为 {value:.3g}，此前为 {expected:.3g}",
    ),
    "detectors.policy-collapse.score": (
        "{signal} fell to {value:.4g} from its established {expected:.4g} and does not come back",
        "{signal} 从已达到的 {expected:.4g} 降至 {value:.4g}，没有恢复",
    ),
    "detectors.policy-collapse.entropy": (
        "entropy fell to {value:.3g} from {expected:.3g} while nothing was gained: the policy has stopped exploring",
        "熵从 {expected:.3g} 降至 {value:.3g}，而没有任何收益：策略停止探索",
    ),
    "detectors.policy-collapse.kl": (
        "the divergence from the reference grew to {value:.3g} nats from {expected:.3g}",
        "与参考策略的散度从 {expected:.3g} 增至 {value:.3g} 纳特",
    ),
    "detectors.policy-collapse.silent": (
        "{signal} is exactly 0 from step {step} on: the run gives no signal to learn from",
        "{signal} 从第 {step} 步起恰为 0：没有可学习的信号",
    ),
    "detectors.policy-collapse.preference": (
        "the preference loss stays at ln 2 and the margin at 0 from step {step} on: chosen and rejected are the same to the model",
        "偏好损失从第 {step} 步起停在 ln 2，边际为 0：模型无法区分优选与拒选",
    ),
    "detectors.policy-collapse.healed": (
        "{signal} had collapsed at step {step} and is back at {value:.4g}",
        "{signal} 在第 {step} 步崩溃，现已恢复到 {value:.4g}",
    ),
    "detectors.overfitting.opened": (
        "{signal} has turned: {value:.4g} against {best:.4g} at its best ({percent:.3g} % above), while the training loss did not rise",
        "{signal} 已转向：当前 {value:.4g}，最佳 {best:.4g}（高出 {percent:.3g} %），而训练损失没有上升",
    ),
    "detectors.overfitting.healed": (
        "{signal} had turned and is back at {value:.4g}, its best being {best:.4g}",
        "{signal} 曾转向，现已回到 {value:.4g}，最佳为 {best:.4g}",
    ),
    "detectors.suspicious-loss.leak": (
        "{signal} and the training loss fall together to {value:.4g}, from {before:.4g} an evaluation or two before: too good to be true",
        "{signal} 与训练损失一同降至 {value:.4g}，此前一两次评估时为 {before:.4g}：好得不真实",
    ),
    "detectors.suspicious-loss.zero": (
        "{signal} is exactly 0 in every row since step {step} ({rows} rows), and nothing in the log is non-finite",
        "{signal} 自第 {step} 步起每一行都恰为 0（{rows} 行），且日志中没有非有限值",
    ),
    "detectors.field.loss-rise": (
        "rule of thumb: {signal} lies 5 % above {limit:.4g} for 50 rows (now {value:.4g})",
        "经验规则：{signal} 连续 50 行高于 {limit:.4g} 的 5 %（现为 {value:.4g}）",
    ),
    "detectors.field.gradient-explosion": (
        "rule of thumb: {signal} is {value:.4g}, above 100 times its start ({limit:.4g})",
        "经验规则：{signal} 为 {value:.4g}，超过起始值的 100 倍（{limit:.4g}）",
    ),
    "detectors.field.gradient-vanishing": (
        "rule of thumb: {signal} is {value:.4g}, below a thousandth of its start ({limit:.4g})",
        "经验规则：{signal} 为 {value:.4g}，低于起始值的千分之一（{limit:.4g}）",
    ),
    "detectors.field.variation": (
        "rule of thumb: the layers' gradient norms vary by {value:.3g} of their mean, above {limit:.3g}",
        "经验规则：各层梯度范数的变异系数为 {value:.3g}，高于 {limit:.3g}",
    ),
    "detectors.field.lower-layers": (
        "rule of thumb: the lower layers' gradient norms stay below {limit:.1g} (largest {value:.3g})",
        "经验规则：浅层梯度范数持续低于 {limit:.1g}（最大 {value:.3g}）",
    ),
}
