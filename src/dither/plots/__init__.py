"""Pictures of results: what was released, and what a preview promises.

The room draws plain columns, so it knows no query and no engine, and it never opens a window: a
picture is a matplotlib figure of its own, free of matplotlib's global state. Importing the room
does not import matplotlib; drawing does.
"""

from dither.plots._preview import plot_preview as plot_preview
from dither.plots._release import plot_release as plot_release

__all__: list[str] = []
