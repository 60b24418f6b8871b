"""The program ``python -m gpu_constructs``."""

import sys

from gpu_constructs.cli.main import main

sys.exit(main())
