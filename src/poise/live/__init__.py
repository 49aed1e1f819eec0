"""Watching a training as it runs. Everything here may import torch; nothing here may harm a run."""
