"""What `benchbot doctor` finds out about each cloud: helpers of `Backend.check`. Everything here only reads."""

from email.utils import parsedate_to_datetime

from runners.backends.base import Finding

# tokens are signed with the time in them, and a service refuses those of another time
CLOCK_FAULT_S = 30.0


def clock(service: str, dated: tuple[str, float]) -> list[Finding]:
    """This host's clock against the Date header of an answer, which came at the second value by our own clock.

    Empty where the answer says no date.
    """
    try:
        there = parsedate_to_datetime(dated[0]).timestamp()
    except ValueError:
        return []
    # the header is cut to whole seconds
    away_s = dated[1] - there - 0.5
    if abs(away_s) <= CLOCK_FAULT_S:
        return [Finding(about="clock", level="ok", sentence=f"It agrees with the clock of {service}.")]
    way = "ahead of" if away_s > 0 else "behind"
    told = f"This host's clock is {abs(away_s):.0f} s {way} {service}'s, so signed calls are refused."
    advice = "Set the clock and keep it right: sudo timedatectl set-ntp true"
    return [Finding(about="clock", level="fault", sentence=told, advice=advice)]
