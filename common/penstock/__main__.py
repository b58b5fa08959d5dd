"""The command `penstock`, run as `python -m penstock`."""

from penstock.cli import main

main()
