"""``python -m streamfold`` is the command line."""

from streamfold.cli import main

if __name__ == "__main__":
    main(prog_name="streamfold")
