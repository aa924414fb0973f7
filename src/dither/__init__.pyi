# What `import dither` offers, listed here alone: type checkers read it, and so does `__init__.py`.
# ruff: noqa: A004 - dt.open, dt.sum, dt.min and dt.max are meant
from dither import accounting as accounting
from dither import errors as errors
from dither import inference as inference
from dither import learn as learn
from dither import ledger as ledger
from dither import local as local
from dither import mechanisms as mechanisms
from dither import privacy as privacy
from dither import synth as synth
from dither.lab import anonymize as anonymize
from dither.lab import attack as attack
from dither.lab.audit import audit as audit
from dither.query._certificate import Certificate as Certificate
from dither.query._certificate import verify as verify
from dither.query._check import check as check
from dither.query._drafting import draft_policy as draft_policy
from dither.query._explain import Explanation as Explanation
from dither.query._owner import owner_bias as owner_bias
from dither.query._preview import Preview as Preview
from dither.query._question import Question as Question
from dither.query._release import Release as Release
from dither.query._requests import bins as bins
from dither.query._requests import count as count
from dither.query._requests import count_units as count_units
from dither.query._requests import max as max
from dither.query._requests import mean as mean
from dither.query._requests import median as median
from dither.query._requests import min as min
from dither.query._requests import quantile as quantile
from dither.query._requests import ratio as ratio
from dither.query._requests import std as std
from dither.query._requests import sum as sum
from dither.query._requests import var as var
from dither.query._session import Session as Session
from dither.query._session import open as open

__version__: str
