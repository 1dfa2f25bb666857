"""Classes whose raw value has no unit: the same demonstrations in km/h or in mm give one region.

What an inequality or a region says is the same in all units, but `raw` is not, and with it what
log(1 + relu(raw)) weighs and what a label of 1 means to a regression. In units of what was
demonstrated, raw is the same number for everybody: of an inequality the range of the part that is
not learned (of "? x - y <= 0" that of y; of "? x + ? y <= 1" nothing has a unit, and raw stays as
it is), of a region the range of each feature, and for discs, which are round, the largest of them.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ringfence.constraints.regions import RegionForm
from ringfence.constraints.template import Template
from ringfence.constraints.written import ConditionalForm, ConjunctionForm, Form
from ringfence.objects import Array


def in_demonstrated_ranges(form: Form, shown: Array) -> Form:
    """The same class, its raw values in units of demonstrated ranges. shown [n, d]: features."""
    if isinstance(form, ConjunctionForm):
        return replace(form, parts=tuple(in_demonstrated_ranges(p, shown) for p in form.parts))
    if isinstance(form, ConditionalForm):  # of a condition only the sign counts
        return replace(form, limit=_template(form.limit, shown))
    if isinstance(form, RegionForm):
        return _region(form, shown)
    return _template(form, shown) if isinstance(form, Template) else form


def _template(form: Template, shown: Array) -> Template:
    spread = float(np.ptp(form.fixed(shown)))
    return replace(form, scale=spread) if spread > 0 else form


def _region(form: RegionForm, shown: Array) -> RegionForm:
    spread = np.ptp(shown[:, list(form.columns)], axis=0)
    if form.discs or form.either or any(hasattr(shape, "radius") for shape in form.given):
        spread = np.full(len(spread), spread.max())
    return replace(form, scale=np.where(spread > 0, spread, form.scale))
