"""`python -m ringfence.cli`: the command, where its script is not on the path."""

import sys

from ringfence.cli.main import main

sys.exit(main())
