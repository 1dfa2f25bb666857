"""Experiments as data: `run` plays a file of experiments/, or anyone's, and writes its tables."""

from ringfence.reproduce.conduct import run
from ringfence.reproduce.experiment import names

__all__ = ["names", "run"]
