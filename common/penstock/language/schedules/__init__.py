"""The times of schedules, as pure functions without clock or database: the caller passes the instant "now".

    Spec.parse("30 2 * * *", "Europe/Berlin").after(now)

    minute hour day-of-month month day-of-week     0 9 * * MON-FRI, with a sixth field for seconds before them.
    @daily                                         and @hourly, @weekly, @monthly, @yearly, @midnight, @annually.
    @every 90s                                     by elapsed time, counted from 1970-01-01T00:00Z.
    at 2030-01-31T09:00                            once.
    DTSTART:20300107T090000 RRULE:FREQ=WEEKLY      RFC 5545, daily or less often.

Where the clocks of a zone change, cron(8)'s rules hold. A **fixed-time** schedule, in which seconds, minutes and hours
do not start with `*`, fires once for each of its times. A time that falls into a gap fires when the gap ends, and a
time that comes twice fires the first time. An **interval** schedule (`*/30 * * * *`) fires whenever the clock on the
wall shows a time that fits. So it follows elapsed time: it does not fire in the gap, and fires in both passes of a
repeated hour.
"""

from penstock.language.schedules.fire_plan import FirePlan, FirePolicy, PlannedFire, plan
from penstock.language.schedules.spec import Preview, Spec
from penstock.language.schedules.zones import find_zone

__all__ = ["FirePlan", "FirePolicy", "PlannedFire", "Preview", "Spec", "find_zone", "plan"]
