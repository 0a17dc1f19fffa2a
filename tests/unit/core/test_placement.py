"""Which offer is tried next, and how long a refusal counts."""

from hypothesis import given
from hypothesis import strategies as st

from bot.core.placement import choose, cool_s, scope_of
from runners.spec import Offer

EAST = Offer(backend="gce", zone="east-a", machine_type="a2", provisioning="spot", scopes=("east", "east-a"))
WEST = Offer(backend="gce", zone="west-a", machine_type="a2", provisioning="spot", scopes=("west", "west-a"))


def test_the_first_offer_that_nothing_speaks_against() -> None:
    """In the operator's order."""
    assert choose((EAST, WEST), {}, 100.0) == EAST
    assert choose((EAST, WEST), {"gce/east": 101.0}, 100.0) == WEST
    assert choose((EAST, WEST), {"gce/east": 100.0}, 100.0) == EAST


def test_one_offer_cools_alone_where_no_scope_was_named() -> None:
    """The same zone may still have another machine type."""
    other = Offer(backend="gce", zone="east-a", machine_type="g2", provisioning="spot", scopes=EAST.scopes)
    assert choose((EAST, other), {scope_of(EAST, ""): 200.0}, 100.0) == other


def test_when_all_are_cooling_the_earliest_end() -> None:
    """Of the longest of each offer's own cool-downs."""
    cooling = {"gce/east": 150.0, "gce/east-a": 300.0, "gce/west": 200.0}
    assert choose((EAST, WEST), cooling, 100.0) == 200.0


def test_scopes_of_two_clouds_are_not_mixed() -> None:
    """Zones of the same name."""
    assert choose((EAST,), {"tpu/east-a": 200.0}, 100.0) == EAST


@given(times=st.integers(min_value=1, max_value=10_000))
def test_pauses_grow_to_a_quarter_of_an_hour(times: int) -> None:
    """Never shorter than the one before, never none."""
    assert 30.0 <= cool_s(times) <= cool_s(times + 1) <= 900.0
