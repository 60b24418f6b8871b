"""The entry point of ``python -m gpu_constructs``, which runs the same command line as ``gpu-constructs``."""

import sys

from gpu_constructs.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
