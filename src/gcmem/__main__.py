"""`python -m gcmem` is the command line."""

from gcmem.cli import run

run()
