"""Before numpy is imported anywhere: spinning BLAS threads fight the simulation's."""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
