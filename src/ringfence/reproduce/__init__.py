"""Experiments as data: `run` plays a file of experiments/, or anyone's, and writes its tables."""

from ringfence.reproduce.conduct import listed, run

__all__ = ["listed", "run"]
