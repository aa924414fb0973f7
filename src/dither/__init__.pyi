# What `import dither` offers, listed here alone: type checkers read it, and so does `__init__.py`.
# ruff: noqa: A004 - dt.open, dt.sum, dt.min and dt.max are meant
from dither import accounting as accounting
from dither import errors as errors
from dither import graph as graph
from dither import inference as inference
from dither import learn as learn
from dither import ledger as ledger
from dither import local as local
from dither import mechanisms as mechanisms
from dither import places as places
from dither import privacy as privacy
from dither import series as series
from dither import synth as synth
from dither.lab import anonymize as anonymize
from dither.lab import attack as attack
from dither.lab.assess import assess as assess
from dither.lab.audit import audit as audit
from dither.policy._checking import check as check
from dither.policy._drafting import draft_policy as draft_policy
from dither.policy._owner_report import owner_bias as owner_bias
from dither.query._aggregates import bins as bins
from dither.query._aggregates import count as count
from dither.query._aggregates import count_units as count_units
from dither.query._aggregates import max as max
from dither.query._aggregates import mean as mean
from dither.query._aggregates import median as median
from dither.query._aggregates import min as min
from dither.query._aggregates import quantile as quantile
from dither.query._aggregates import ratio as ratio
from dither.query._aggregates import std as std
from dither.query._aggregates import sum as sum
from dither.query._aggregates import var as var
from dither.query._preview import Preview as Preview
from dither.query._question import Question as Question
from dither.query._release import Release as Release
from dither.service.client._connect import connect as connect
from dither.session._certificate import Certificate as Certificate
from dither.session._registry import registry_entry as registry_entry
from dither.session._session import Session as Session
from dither.session._session import open as open
from dither.session._verify import verify as verify

__version__: str
