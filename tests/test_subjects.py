"""What is audited is read from the code: each mechanism and channel declares it beside its law."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from types import ModuleType

import pytest

from dither import graph, inference, learn, local, mechanisms, synth
from dither._subjects import Subject, declared, declaring
from dither.lab.audit import Outcome, audit
from dither.mechanisms._base import Mechanism
from dither.noise import discrete_laplace

pytestmark = pytest.mark.extras


def test_every_mechanism_declares_what_to_audit() -> None:
    """Whatever mechanism the package offers says which neighbours test it, and what it claims."""
    offered = {getattr(mechanisms, name) for name in mechanisms.__all__}
    made = {m for m in offered if inspect.isclass(m) and issubclass(m, Mechanism)}
    made = {m for m in made if not inspect.isabstract(m)}
    assert made
    assert made <= set(declaring(mechanisms))


def test_every_channel_declares_what_to_audit() -> None:
    """So does every channel and every structure of local reports."""
    offered = {getattr(local, name) for name in local.__all__}
    made = {m for m in offered if inspect.isclass(m) and isinstance(getattr(m, "kind", 0), str)}
    assert {m.kind for m in made} >= {"grr", "sdpm", "attributes", "personal"}
    assert made <= set(declaring(local))


@pytest.mark.parametrize("package", [mechanisms, local, graph, inference, learn, synth])
def test_subjects_differ_by_name(package: ModuleType) -> None:
    """A table of audits tells them apart, and none claims nothing."""
    found = list(declared(package))
    assert len({one.name for one in found}) == len(found)
    assert all(one.epsilon > 0 and 0 <= one.delta < 1 for one in found)


def test_a_new_mechanism_is_audited_where_it_is_written() -> None:
    """A class in a package's list that declares a subject is all that an audit of it takes."""

    class HalfTheNoise:
        """A mechanism that a newcomer wrote, and got wrong."""

        @classmethod
        def audit_subjects(cls) -> Iterator[Subject]:
            """Counts of 0 and 1."""
            yield Subject("half the noise", lambda n, size: n + discrete_laplace("0.5", size), 0, 1)

    package = ModuleType("package")
    package.__dict__.update(HalfTheNoise=HalfTheNoise, __all__=["HalfTheNoise"])
    (subject,) = declared(package)
    found = audit(subject.mechanism, subject.d0, subject.d1, subject.epsilon, samples=20_000)
    assert found.verdict is Outcome.VIOLATED
