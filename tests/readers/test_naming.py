"""Foreign names: one table per kind of log."""

from __future__ import annotations

import numpy as np
import pytest

from poise.readers.assign import assign
from poise.readers.base import UnreadableError
from poise.readers.words import split_name


def named(*names: str, **values: list[float]) -> dict[str, str]:
    """The log's name -> column, with harmless falling values unless given."""
    falling = np.linspace(0.9, 0.4, 12)
    series = dict.fromkeys(names, falling) | {name: np.array(v, float) for name, v in values.items()}
    return {name: a.column for name, a in assign(series, {}).items()}


ALONE = {
    "loss": "loss",
    "train/loss": "loss",
    "train_loss": "loss",
    "trainLoss": "loss",
    "Train Loss": "loss",
    "trainloss": "loss",
    "trl": "loss",
    "tel": "eval_loss",
    "lm loss": "loss",
    "lm-loss": "loss",
    "train/ce": "loss",
    "cross_entropy": "loss",
    "nll_loss": "loss",
    "val_bpb": "eval_loss",
    "Average_Loss": "loss",
    "train_loss_local": "loss",
    "训练损失": "loss",
    "eval/loss": "eval_loss",
    "validation loss": "eval_loss",
    "val_loss_epoch": "eval_loss",
    "dev.loss": "eval_loss",
    "test_loss": "eval_loss",
    "eval_wikitext_loss": "eval_loss",
    "run 7 - lm_loss": "loss",
    "best_val_loss": "other/best_val_loss",
    "loss scale": "loss_scale",
    "lr": "learning_rate",
    "lr/pg0": "learning_rate",
    "lr-AdamW": "learning_rate",
    "学习率": "learning_rate",
    "learning rate": "learning_rate",
    "grad_norm": "grad_norm",
    "train/grad_norm": "grad_norm",
    "gnorm": "grad_norm",
    "total_norm": "grad_norm",
    "grad norm": "grad_norm",
    "gradient_norm": "grad_norm",
    "grad_norm_square": "grad_norm",
    "grad_2.0_norm_total": "grad_norm",
    "grad_norm_after_clip": "grad_norm_clipped",
    "params norm": "param_norm",
    "max_grad_norm": "other/max_grad_norm",
    "ppl": "loss",
    "Acc@1": "accuracy",
    "val_acc": "eval_accuracy",
    "metrics/mAP50(B)": "eval_accuracy",
    "eval_bleu": "eval_accuracy",
    "explained_variance": "other/explained_variance",
    "train/total_flos": "other/train/total_flos",
    "moe/aux_loss": "aux_loss",
    "load_balancing_loss": "aux_loss",
    "tok/s": "tokens_per_second",
    "train_samples_per_second": "samples_per_second",
    "elapsed time per iteration (ms)": "step_seconds",
    "s/it": "step_seconds",
    "it/s": "other/it/s",
    "data_time": "other/data_time",
    "max_mem_mb": "memory_allocated",
    "cpu_ram_gb": "host_memory",
    "number of skipped iterations": "skipped_steps",
    "number of nan iterations": "nonfinite_count",
    "num_input_tokens_seen": "tokens",
    "epoch": "epoch",
    "max_attention_logit": "attention_logit_max",
    "temperature": "other/temperature",
    "kl_coef": "other/kl_coef",
    "flubber": "other/flubber",
    "…": "other/…",
}


@pytest.mark.parametrize(("name", "column"), ALONE.items())
def test_a_name_alone_is_recognised_by_its_words(name: str, column: str) -> None:
    assert named(name)[name] == column


def test_a_total_loss_is_the_loss_and_its_parts_are_members() -> None:
    found = named("loss_box_reg", "loss_rpn_cls", "total_loss")
    assert found == {"loss_box_reg": "loss/box_reg", "loss_rpn_cls": "loss/rpn_cls", "total_loss": "loss"}


def test_without_a_total_all_parts_stay_members() -> None:
    found = named("train/box_loss", "train/cls_loss", "val/box_loss", "val/cls_loss")
    assert list(found.values()) == ["loss/box", "loss/cls", "eval_loss/box", "eval_loss/cls"]


def test_the_series_per_step_wins_over_the_mean_per_epoch_in_training_and_loses_in_validation() -> None:
    found = named("train_loss_epoch", "train_loss_step", "val_loss_step", "val_loss_epoch")
    assert found["train_loss_step"] == "loss"
    assert found["train_loss_epoch"] == "other/train_loss_epoch"
    assert found["val_loss_epoch"] == "eval_loss"


def test_a_running_average_is_not_judged_beside_the_raw_value() -> None:
    assert named("loss (average)", "loss") == {"loss (average)": "other/loss (average)", "loss": "loss"}


def test_a_summary_of_few_points_does_not_take_the_place_of_the_history() -> None:
    found = named(train_loss=[1.0], loss=[3.0, 2.0, 2.0, 1.5, 1.0, 1.0])
    assert found == {"train_loss": "other/train_loss", "loss": "loss"}


def test_validation_is_preferred_to_test_and_test_becomes_a_member() -> None:
    assert named("test_loss", "val_loss") == {"test_loss": "eval_loss/test", "val_loss": "eval_loss"}


def test_the_two_sides_of_adversarial_training_are_no_ordinary_losses() -> None:
    for generator, discriminator in (("Generator Loss", "Discriminator Loss"), ("loss_G", "loss_D"), ("errG", "errD")):
        assert named(generator, discriminator) == {
            generator: "generator_loss",
            discriminator: "discriminator_loss",
        }


def test_in_reinforcement_learning_the_loss_has_no_level() -> None:
    found = named("loss", "reward", "reward_std", "kl", "entropy", "completions/mean_length", "clip_ratio/high_max")
    assert found == {
        "loss": "policy_loss",
        "reward": "reward",
        "reward_std": "reward_std",
        "kl": "kl",
        "entropy": "entropy",
        "completions/mean_length": "completion_length",
        "clip_ratio/high_max": "other/clip_ratio/high_max",
    }


def test_the_losses_of_an_actor_and_a_critic_are_told_apart() -> None:
    found = named(
        "rollout/ep_rew_mean",
        "train/policy_gradient_loss",
        "train/value_loss",
        "train/loss",
        "train/explained_variance",
    )
    assert found == {
        "rollout/ep_rew_mean": "reward",
        "train/policy_gradient_loss": "policy_loss",
        "train/value_loss": "value_loss",
        "train/loss": "policy_loss/total",
        "train/explained_variance": "other/train/explained_variance",
    }


def test_the_loss_of_preference_training_is_a_loss() -> None:
    found = named("loss", "rewards/chosen", "rewards/rejected", "rewards/margins", "rewards/accuracies")
    assert found["loss"] == "loss"
    assert found["rewards/margins"] == "reward_margin"
    assert found["rewards/accuracies"] == "accuracy"
    assert found["rewards/chosen"] == "other/rewards/chosen"


def test_a_reward_column_that_is_always_zero_does_not_make_a_log_one_of_reinforcement_learning() -> None:
    assert named("loss", reward=[0.0] * 9)["loss"] == "loss"


def test_an_entropy_loss_is_minus_the_entropy_only_where_it_is_negative() -> None:
    negative = assign({"train/entropy_loss": np.array([-1.1, -0.5]), "reward": np.ones(2)}, {})
    positive = assign({"actor/entropy_loss": np.array([1.1, 0.5]), "reward": np.ones(2)}, {})
    assert negative["train/entropy_loss"].meaning.convert == "negate"
    assert positive["actor/entropy_loss"].meaning.convert == ""


def test_values_overrule_a_name() -> None:
    found = named(loss=list(range(20)), lr=[100.0, 300.0], accuracy=[-3.0, 5000.0])
    assert found == {"loss": "other/loss", "lr": "other/lr", "accuracy": "other/accuracy"}


def test_layers_are_members_under_their_own_name() -> None:
    found = named("grad_norm", "grad_norm/layers.3.mlp.value", "grad_norm/layers.4.mlp.value")
    assert found["grad_norm/layers.3.mlp.value"] == "grad_norm/layers.3.mlp.value"


def test_a_bare_norm_beside_a_loss_is_the_gradients() -> None:
    assert named("loss", "norm") == {"loss": "loss", "norm": "grad_norm"}
    assert named("norm") == {"norm": "other/norm"}


def test_bits_per_byte_step_back_where_the_loss_is_there() -> None:
    assert named("val_bpb", "val_loss") == {"val_bpb": "other/val_bpb", "val_loss": "eval_loss"}


def test_what_the_user_maps_wins_and_the_former_choice_steps_back() -> None:
    found = assign({"loss": np.ones(9), "Flubber": np.ones(9)}, {"loss": "flubber"})
    assert {n: a.column for n, a in found.items()} == {"loss": "other/loss", "Flubber": "loss"}


@pytest.mark.parametrize(("mapping", "hint"), [({"loss": "trian_loss"}, "train_loss"), ({"los": "train_loss"}, "loss")])
def test_an_unknown_name_in_the_mapping_lists_the_nearest(mapping: dict[str, str], hint: str) -> None:
    with pytest.raises(UnreadableError, match=hint):
        assign({"train_loss": np.ones(3)}, mapping)


def test_no_two_names_share_a_column() -> None:
    names = [*ALONE, "Loss", "LOSS", "loss ", "total loss", "losses", "reward", "Reward"]
    columns = list(named(*names).values())
    assert len(set(columns)) == len(names)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("trainLoss", ("train", "loss")),
        ("metrics/mAP50(B)", ("metrics", "map", "50", "b")),
        ("rewards/format_reward_fn/mean", ("rewards", "format", "reward", "fn", "mean")),
        ("errD", ("err", "d")),
        ("LMLoss", ("lm", "loss")),
    ],
)
def test_names_are_cut_at_separators_and_at_changes_of_case(text: str, words: tuple[str, ...]) -> None:
    assert split_name(text).words == words
