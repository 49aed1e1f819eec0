"""Advice as code for the trainer that wrote the log: HF arguments, Lightning, Megatron flags, DeepSpeed JSON, Keras, ...

A topic has one sentence (in `messages/causes.py`, id `causes.advice.<topic>`) and one snippet per dialect, in `SNIPPETS`.
Where a dialect has no snippet of its own, the plain torch one is shown, and where there is none at all the sentence stands alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from poise.records import Message

DIALECTS: Mapping[str, str] = {
    "hf": "hf", "trl": "hf", "llama-factory": "hf", "llamafactory": "hf", "axolotl": "hf", "transformers": "hf", "unsloth": "hf",
    "lightning": "lightning", "nemo": "lightning", "megatron": "megatron", "megatron-deepspeed": "megatron", "deepspeed": "deepspeed",
    "keras": "keras", "tensorflow": "keras", "torchtitan": "torchtitan", "yolo": "yolo", "ultralytics": "yolo",
}  # fmt: skip
"""Trainer as readers name it -> dialect; everything else speaks plain torch."""

SNIPPETS: Mapping[str, Mapping[str, str]] = {
    "lower-learning-rate": {
        "hf": "TrainingArguments(learning_rate={value:.2g})",
        "lightning": "in configure_optimizers: torch.optim.AdamW(self.parameters(), lr={value:.2g})",
        "megatron": "--lr {value:.2g}",
        "deepspeed": '"optimizer": {{"params": {{"lr": {value:.2g}}}}}',
        "keras": "keras.optimizers.AdamW(learning_rate={value:.2g})",
        "torchtitan": "[optimizer] lr = {value:.2g}",
        "yolo": "yolo train lr0={value:.2g}",
        "torch": "for g in optimizer.param_groups: g['lr'] = {value:.2g}",
    },
    "longer-warmup": {
        "hf": "TrainingArguments(warmup_steps={steps})",
        "lightning": "in configure_optimizers: LinearLR(optimizer, 0.01, total_iters={steps}), with 'interval': 'step'",
        "megatron": "--lr-warmup-iters {steps}",
        "deepspeed": '"scheduler": {{"type": "WarmupDecayLR", "params": {{"warmup_num_steps": {steps}}}}}',
        "keras": "keras.optimizers.schedules.CosineDecay(..., warmup_target=peak, warmup_steps={steps})",
        "torchtitan": "[lr_scheduler] warmup_steps = {steps}",
        "yolo": "yolo train warmup_epochs=5",
        "torch": "torch.optim.lr_scheduler.LinearLR(optimizer, 0.01, total_iters={steps})",
    },
    "clip-gradients": {
        "hf": "TrainingArguments(max_grad_norm={value:g})",
        "lightning": "Trainer(gradient_clip_val={value:g})",
        "megatron": "--clip-grad {value:g}",
        "deepspeed": '"gradient_clipping": {value:g}',
        "keras": "keras.optimizers.AdamW(global_clipnorm={value:g})",
        "torchtitan": "[training] max_norm = {value:g}",
        "torch": "torch.nn.utils.clip_grad_norm_(model.parameters(), {value:g})",
    },
    "set-learning-rate": {
        "hf": "TrainingArguments(learning_rate=2e-5, lr_scheduler_type='cosine')",
        "lightning": "Trainer(callbacks=[LearningRateMonitor('step')])",
        "megatron": "--lr 1e-4 --min-lr 1e-5 --lr-decay-iters <train-iters>",
        "deepspeed": '"optimizer": {{"params": {{"lr": 1e-4}}}}',
        "keras": "model.compile(optimizer=keras.optimizers.AdamW(1e-4))",
        "torchtitan": "[optimizer] lr = 3e-4",
        "yolo": "yolo train lr0=0.01 lrf=0.01",
        "torch": "print(scheduler.get_last_lr(), [g['lr'] for g in optimizer.param_groups])",
    },
    "slower-decay": {
        "hf": "TrainingArguments(lr_scheduler_type='cosine_with_min_lr', lr_scheduler_kwargs={{'min_lr_rate': 0.1}})",
        "lightning": "CosineAnnealingLR(optimizer, T_max=total_steps, eta_min=0.1 * peak), with 'interval': 'step'",
        "megatron": "--lr-decay-style cosine --lr-decay-iters <train-iters> --min-lr <peak/10>",
        "deepspeed": '"scheduler": {{"type": "WarmupCosineLR", "params": {{"total_num_steps": N, "cos_min_ratio": 0.1}}}}',
        "keras": "keras.optimizers.schedules.CosineDecay(peak, decay_steps=total_steps, alpha=0.1)",
        "torchtitan": "[lr_scheduler] decay_type = 'cosine'; min_lr_factor = 0.1",
        "yolo": "yolo train cos_lr=True lrf=0.1",
        "torch": "CosineAnnealingLR(optimizer, T_max=total_steps, eta_min=0.1 * peak)",
    },
    "fix-scheduler": {
        "hf": "do not pass the scheduler to accelerator.prepare, or step it once per optimizer step: if accelerator.sync_gradients: scheduler.step()",
        "lightning": "return {{'scheduler': s, 'interval': 'step', 'frequency': 1}} and size it with trainer.estimated_stepping_batches",
        "megatron": "--lr-decay-iters <train-iters>; on resume --use-checkpoint-opt_param-scheduler",
        "deepspeed": "let engine.step() drive the scheduler, and do not call scheduler.step() as well",
        "torch": "call scheduler.step() once after each optimizer.step(), and save scheduler.state_dict()",
    },
    "inspect-batches": {
        "hf": "TrainingArguments(ignore_data_skip=False, seed=<same>), then replay the loader to steps {first}-{last} and print the samples",
        "megatron": "--data-cache-path keeps the sample index: print samples of iterations {first}-{last}",
        "torch": "for step, batch in enumerate(loader): print(batch) if {first} <= step <= {last} else None",
    },
    "skip-batches": {
        "megatron": "--iterations-to-skip {first}",
        "torch": "if {first} <= step <= {last}: continue  # from a checkpoint before step {first}",
    },
    "shuffle-globally": {
        "hf": "dataset = dataset.shuffle(seed=0)  # for a stream: shuffle(buffer_size=100_000)",
        "lightning": "DataLoader(..., shuffle=True); for several ranks DistributedSampler(shuffle=True) and set_epoch",
        "megatron": "--dataloader-type cyclic",
        "keras": "ds.shuffle(len(ds), reshuffle_each_iteration=True)",
        "torch": "DataLoader(..., shuffle=True); DistributedSampler: sampler.set_epoch(epoch)",
    },
    "fewer-epochs": {
        "hf": "TrainingArguments(load_best_model_at_end=True, metric_for_best_model='eval_loss'), EarlyStoppingCallback(3)",
        "lightning": "Trainer(callbacks=[EarlyStopping('val_loss', patience=3), ModelCheckpoint(monitor='val_loss')])",
        "keras": "keras.callbacks.EarlyStopping('val_loss', patience=3, restore_best_weights=True)",
        "yolo": "yolo train patience=20",
        "torch": "stop at the best evaluation and keep that checkpoint",
    },
    "regularise": {
        "hf": "TrainingArguments(weight_decay=0.1); model config: attention_dropout=0.1, hidden_dropout=0.1",
        "lightning": "torch.optim.AdamW(..., weight_decay=0.1) and nn.Dropout(0.1)",
        "megatron": "--weight-decay 0.1 --hidden-dropout 0.1 --attention-dropout 0.1",
        "deepspeed": '"optimizer": {{"params": {{"weight_decay": 0.1}}}}',
        "keras": "keras.layers.Dropout(0.2); keras.optimizers.AdamW(weight_decay=0.1)",
        "yolo": "yolo train weight_decay=0.001 mosaic=1.0 mixup=0.1",
        "torch": "torch.optim.AdamW(..., weight_decay=0.1) and nn.Dropout(0.1)",
    },
    "use-bf16": {
        "hf": "TrainingArguments(bf16=True, fp16=False)",
        "lightning": "Trainer(precision='bf16-mixed')",
        "megatron": "--bf16  # instead of --fp16",
        "deepspeed": '"bf16": {{"enabled": true}}, "fp16": {{"enabled": false}}',
        "keras": "keras.mixed_precision.set_global_policy('mixed_bfloat16')",
        "torchtitan": "[training] mixed_precision_param = 'bfloat16'",
        "yolo": "yolo train amp=False",
        "torch": "torch.autocast('cuda', dtype=torch.bfloat16)",
    },
    "loss-scale-window": {
        "megatron": "--initial-loss-scale 65536 --min-loss-scale 1 --loss-scale-window 1000",
        "deepspeed": '"fp16": {{"initial_scale_power": 16, "loss_scale_window": 1000, "hysteresis": 2, "min_loss_scale": 1}}',
        "lightning": "Trainer(plugins=[MixedPrecision('16-mixed', 'cuda', torch.amp.GradScaler('cuda', init_scale=2**14))])",
        "torch": "torch.amp.GradScaler('cuda', init_scale=2**14, growth_interval=2000)",
    },
    "unscale-before-clip": {
        "hf": "accelerator.clip_grad_norm_(model.parameters(), 1.0)  # it unscales; torch's own does not",
        "lightning": "Trainer(gradient_clip_val=1.0)  # instead of clipping by hand",
        "torch": "scaler.unscale_(optimizer); clip_grad_norm_(model.parameters(), 1.0); scaler.step(optimizer); scaler.update()",
    },
    "fp32-master": {
        "hf": "AutoModel.from_pretrained(..., torch_dtype=torch.float32) with TrainingArguments(bf16=True)",
        "deepspeed": '"bf16": {{"enabled": true}}, "data_types": {{"grad_accum_dtype": "fp32"}}',
        "torch": "model.float() with torch.autocast('cuda', dtype=torch.bfloat16), so that weights and moments stay fp32",
    },
    "save-optimizer-state": {
        "hf": "TrainingArguments(save_only_model=False); trainer.train(resume_from_checkpoint=True)",
        "lightning": "trainer.fit(model, ckpt_path='last.ckpt')  # not load_from_checkpoint, which restores weights only",
        "megatron": "without --no-save-optim, --no-load-optim and --finetune",
        "deepspeed": "engine.load_checkpoint(path, load_optimizer_states=True, load_lr_scheduler_states=True)",
        "keras": "keras.callbacks.BackupAndRestore(...)  # not load_weights, which drops the optimizer",
        "torch": "save and load optimizer.state_dict(), scheduler.state_dict(), scaler.state_dict()",
    },
    "lower-beta2": {
        "hf": "TrainingArguments(adam_beta2=0.95)",
        "megatron": "--adam-beta2 0.95",
        "deepspeed": '"optimizer": {{"params": {{"betas": [0.9, 0.95]}}}}',
        "keras": "keras.optimizers.AdamW(beta_2=0.95)",
        "torchtitan": "[optimizer] beta2 = 0.95",
        "torch": "torch.optim.AdamW(..., betas=(0.9, 0.95))",
    },
    "raise-epsilon": {
        "hf": "TrainingArguments(adam_epsilon=1e-6)",
        "megatron": "--adam-eps 1e-6",
        "deepspeed": '"optimizer": {{"params": {{"eps": 1e-6}}}}',
        "keras": "keras.optimizers.AdamW(epsilon=1e-6)",
        "torch": "torch.optim.AdamW(..., eps=1e-6)",
    },
    "initialise": {
        "hf": "check the loading report for 'newly initialized' weights; config.initializer_range=0.02",
        "megatron": "--init-method-std 0.02",
        "keras": "kernel_initializer='he_normal'",
        "torch": "nn.init.normal_(w, std=0.02); residual outputs: std=0.02 / math.sqrt(2 * num_layers)",
    },
    "qk-norm": {
        "megatron": "--qk-layernorm",
        "torch": "q, k = F.rms_norm(q, (d,)), F.rms_norm(k, (d,))  # before attention; or a logit soft-cap",
    },
    "bigger-batch": {
        "hf": "TrainingArguments(gradient_accumulation_steps={factor})",
        "lightning": "Trainer(accumulate_grad_batches={factor})",
        "megatron": "--global-batch-size <{factor}x>",
        "deepspeed": '"gradient_accumulation_steps": {factor}',
        "keras": "keras.optimizers.AdamW(gradient_accumulation_steps={factor})",
        "yolo": "yolo train batch=<{factor}x> nbs=<{factor}x>",
        "torch": "step the optimizer once every {factor} micro-batches",
    },
    "smaller-batch": {
        "hf": "TrainingArguments(per_device_train_batch_size=<half>, gradient_accumulation_steps=<twice>, gradient_checkpointing=True)",
        "lightning": "Trainer(accumulate_grad_batches=2) with half the batch",
        "megatron": "--micro-batch-size <half> --recompute-activations",
        "deepspeed": '"train_micro_batch_size_per_gpu": <half>, "gradient_accumulation_steps": <twice>',
        "keras": "model.fit(batch_size=<half>)",
        "torchtitan": "[training] local_batch_size = <half>",
        "yolo": "yolo train batch=<half>",
        "torch": "halve the micro-batch, double the accumulation, checkpoint activations",
    },
    "fix-shapes": {
        "hf": "TrainingArguments(train_sampling_strategy='group_by_length') (group_by_length=True before transformers 5)",
        "lightning": "pad to multiples of 64 in collate_fn, and bucket by length",
        "keras": "ds.padded_batch(batch, padded_shapes=[L])",
        "torch": "pad to a few fixed lengths in collate_fn, or pack samples to full sequences",
    },
    "expandable-segments": {"torch": "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"},
    "show-non-finite": {"hf": "TrainingArguments(logging_nan_inf_filter=False, logging_steps=1)"},
    "check-labels": {
        "hf": "batch = next(iter(trainer.get_train_dataloader())); print((batch['labels'] != -100).sum(1))",
        "torch": "print((labels != -100).sum(1))  # no row may be 0",
    },
    "anomaly-mode": {
        "lightning": "Trainer(detect_anomaly=True)",
        "torch": "with torch.autograd.set_detect_anomaly(True): replay the batch of step {step}",
    },
    "count-tokens": {
        "hf": "compute_loss(..., num_items_in_batch): sum the loss, divide by the labels of the whole update",
        "torch": "loss = F.cross_entropy(..., reduction='sum') / num_labels_of_the_whole_update",
    },
    "resize-embedding": {"hf": "model.resize_token_embeddings(len(tokenizer))", "torch": "assert ids.max() < embedding.num_embeddings"},
    "zero-gradients": {"torch": "optimizer.zero_grad(set_to_none=True) after each optimizer.step()"},
    "entropy-bonus": {"torch": "raise the entropy coefficient (for example 0.01), or lower the learning rate of the policy"},
    "kl-penalty": {"hf": "GRPOConfig(beta=0.04) or PPOConfig(kl_coef=0.05)", "torch": "raise the coefficient of the KL penalty"},
    "task-weights": {"yolo": "yolo train box=7.5 cls=0.5 dfl=1.5", "torch": "loss = sum(l / std0[name] for name, l in losses.items())"},
    "decoding-settings": {
        "hf": "model.generate(do_sample=True, temperature=0.8, top_p=0.9, no_repeat_ngram_size=4)",
        "torch": "sample with temperature 0.8 and top-p 0.9",
    },
    "label-smoothing": {
        "hf": "TrainingArguments(label_smoothing_factor=0.02)",
        "keras": "keras.losses.CategoricalCrossentropy(label_smoothing=0.02)",
        "torch": "F.cross_entropy(logits, labels, label_smoothing=0.02)",
    },
    "memory-snapshot": {"torch": "torch.cuda.memory._record_memory_history(); look for tensors kept across steps (loss without .item())"},
    "loader-workers": {
        "hf": "TrainingArguments(dataloader_num_workers=8, dataloader_prefetch_factor=4)",
        "yolo": "yolo train workers=8 cache=ram",
        "torch": "DataLoader(num_workers=8, prefetch_factor=4, persistent_workers=True)",
    },
}  # fmt: skip


def dialect(trainer: str | None) -> str:
    """Return whose words to use for a trainer as readers name it."""
    return DIALECTS.get((trainer or "").lower(), "torch")


def advise(trainer: str | None, topic: str, **values: Any) -> Message:
    """Say what to change, with the code that does it.

    Args:
        trainer: as `RunInfo.trainer`.
        topic: a topic of `causes.advice.*`.
        values: what the snippet and the sentence need, for example `value=` or `steps=`.
    """
    snippets = SNIPPETS.get(topic, {})
    snippet = snippets.get(dialect(trainer), snippets.get("torch", ""))
    code = snippet.format(**values)
    return Message(f"causes.advice.{topic}", {**values, "code": f": {code}" if code else ""})
