"""The program ``python -m gpu_constructs``."""

import sys

from gpu_constructs.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
