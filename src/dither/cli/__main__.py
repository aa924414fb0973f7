"""``python -m dither.cli``: the command without its script."""

from dither.cli import main

if __name__ == "__main__":
    main(prog_name="dither")
