"""Experiments that `ringfence reproduce` runs from nothing to tables and figures."""
