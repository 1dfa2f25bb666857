"""Before numpy is imported anywhere: spinning BLAS threads fight the simulation's.

What JAX compiles is kept between test runs, apart from the user's own.
"""

import os
from pathlib import Path

from ringfence.compilation import keep_compiled

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ["RINGFENCE_CACHE"] = str(Path(__file__).parent.parent / ".pytest_cache" / "ringfence")
keep_compiled()
