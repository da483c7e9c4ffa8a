"""``python -m flexmem``: the command line."""

from flexmem.cli import main

main()
