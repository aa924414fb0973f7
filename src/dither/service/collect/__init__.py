"""Reports of the local room, taken in from phones and browsers, counted and published.

- ``_survey``: a survey's configuration, signed by the owner.
- ``_blind``: blind signatures, RFC 9474; ``_issuing`` gives tokens by them, so many a device a day.
- ``_bodies``: what a device posts.
- ``_intake``: many posts in one commit, each counted once; ``_store`` has the tables.
- ``_routes``: all of it over HTTP.
- ``_publishing``: estimates on a schedule, and batches in random order.
"""

from dither.service.collect._collector import Collector
from dither.service.collect._publishing import publish_due
from dither.service.collect._routes import app, routes
from dither.service.collect._settings import CollectSettings as CollectSettings
from dither.service.collect._settings import read_collect
from dither.service.collect._survey import SurveyConfiguration as SurveyConfiguration
from dither.service.collect._survey import new_survey

__all__ = ["Collector", "app", "new_survey", "publish_due", "read_collect", "routes"]
