"""A collector: the surveys of a configuration, with their state, tokens and counts."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from concurrent.futures import Future

from dither.errors import UnknownNameError, nearest
from dither.service.collect._blind import signed
from dither.service.collect._bodies import Post
from dither.service.collect._intake import CountedPosts, GroupCommit, PostedReports
from dither.service.collect._issuing import TokenIssuer
from dither.service.collect._numbers import Counts
from dither.service.collect._rates import AddressRates
from dither.service.collect._settings import CollectSettings, SurveySettings
from dither.service.collect._store import CollectorStore

__all__ = ["Collector"]


class Collector:
    """Takes reports of surveys in, and counts them.

    Several processes may have one state, each with a collector of its own.

    Parameters
    ----------
    settings : CollectSettings
        As `read_collect` gives them.
    today : callable
        The day in UTC.

    Raises
    ------
    LedgerError
        The state cannot be used.
    """

    def __init__(
        self,
        settings: CollectSettings,
        today: Callable[[], dt.date] = lambda: dt.datetime.now(dt.UTC).date(),
    ) -> None:
        self.settings = settings
        self.store = CollectorStore(settings.state)
        self.issuer = TokenIssuer(settings, self.store, today)
        self.rates = AddressRates(settings.rate)
        self._commits = GroupCommit(self.store, settings.surveys)

    def __repr__(self) -> str:
        return f"<collector of {', '.join(sorted(self.settings.surveys))}>"

    def survey(self, name: str) -> SurveySettings:
        """The survey of a name.

        Raises
        ------
        UnknownNameError
            There is none.
        """
        try:
            return self.settings.surveys[name]
        except KeyError:
            raise UnknownNameError(
                "unknown survey" + nearest(name, self.settings.surveys)
            ) from None

    def holds(self, name: str, posts: Sequence[Post]) -> bool:
        """Whether every token is one of this survey's, under its configuration."""
        configuration = self.survey(name).configuration
        key, digest = configuration.token_key, configuration.digest
        return all(signed(key, token + digest, signature) for token, signature, _ in posts)

    def take(self, name: str, posts: Sequence[Post]) -> Future[CountedPosts]:
        """Count posts whose tokens hold; done once they are on the disk.

        Raises
        ------
        BusyCollector
            Too many wait.
        ArgumentError
            It is closed.
        """
        self.survey(name)
        return self._commits.submit(
            name, [PostedReports(token, records) for token, _, records in posts]
        )

    def counts(self, name: str) -> Counts:
        """All that was counted of a survey: counts of the local room, which add up.

        Reports that wait to be shuffled are not among them.
        """
        self.survey(name)
        return self._commits.counts(name)

    def close(self) -> None:
        """Commit what waits, and give everything back."""
        self._commits.close()
        self.store.close()
