"""What a release gives away of the people in it: singling out, linkability, inference.

`assess` tries several attackers of each on people who were in the table and on as many who were
not, beside what a claimed epsilon would allow, and writes a page that a lawyer can read and a
statistician can check.
"""

from dither.lab.assess._assess import assess
from dither.lab.assess._claim import HeldClaim as HeldClaim
from dither.lab.assess._fresh import ControlCheck as ControlCheck
from dither.lab.assess._judged import Said as Said
from dither.lab.assess._judged import TriedAttack as TriedAttack
from dither.lab.assess._result import Assessment as Assessment
from dither.lab.assess._result import Criterion as Criterion

__all__ = ["assess"]
