"""What is not collected where a library is not installed: its files cannot be imported there."""

from importlib.util import find_spec

collect_ignore_glob = [] if find_spec("torch") else ["src/dither/learn/deep/*"]
