"""Pictures of results: what was released, and what a preview promises.

Plain columns are drawn, by code that knows no query and no engine, and no window is ever opened: a
picture is a matplotlib figure of its own, free of matplotlib's global state. Importing this package
does not import matplotlib; drawing does.
"""

from dither.plots.tables._preview import plot_preview as plot_preview
from dither.plots.tables._release import plot_release as plot_release

__all__: list[str] = []
