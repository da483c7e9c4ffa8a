"""``python -m flexmem``: the command line."""

from flexmem.cli import main

if __name__ == "__main__":
    main()
