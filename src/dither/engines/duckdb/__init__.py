"""The embedded engine: DuckDB inside this process, over files and frames."""

from dither.engines.duckdb.engine import DuckDBEngine
from dither.engines.duckdb.sources import FileSource, FrameSource

__all__ = ["DuckDBEngine", "FileSource", "FrameSource"]
