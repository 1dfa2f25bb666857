"""The errors a user can cause. Each message says what was wrong, where, and what to do."""

from __future__ import annotations


class RingfenceError(Exception):
    """Base of every error that Ringfence raises on purpose."""


class InvalidInput(RingfenceError):
    """A map, demonstration, configuration, file or argument that can't be used (exit code 2)."""


class InfeasibleLimit(RingfenceError):
    """No policy keeps the cost within the limit."""


class UnboundedProblem(RingfenceError):
    """Reward can be collected without end: the problem has no optimum."""


class SolverFailed(RingfenceError):
    """A numerical solver stopped without an answer."""


class EngineLost(RingfenceError):
    """The machines that solved are gone; what they had finished is kept."""
