"""python -m rtopt."""

from rtopt.cli import main

if __name__ == "__main__":
    main()
