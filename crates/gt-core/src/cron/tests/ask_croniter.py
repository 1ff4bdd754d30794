"""Asks croniter each question of `croniter.txt`, and writes the file again with its answers.

    python3 -m venv env && env/bin/pip install croniter==6.2.4 tzdata && env/bin/python ask_croniter.py

A question that is new is a row whose last column has one `?` for each time that is wanted.
"""

import re
from datetime import datetime, timezone
from pathlib import Path
from zoneinfo import ZoneInfo

from croniter import CroniterBadDateError, croniter

FILE = Path(__file__).with_name("croniter.txt")
WEEKDAYS = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"]


def as_croniter_writes(pattern):
    """`5L` and `friL` are `L5` there."""
    for number, name in enumerate(WEEKDAYS):
        pattern = re.sub(rf"\b{name}L\b", f"{number}L", pattern, flags=re.IGNORECASE)
    return re.sub(r"\b([0-7])L\b", r"L\1", pattern)


def answer(zone, pattern, since, n_times):
    try:
        since = datetime.fromisoformat(since).astimezone(ZoneInfo(zone))
        times = croniter(as_croniter_writes(pattern), since, implement_cron_bug=True)
        found = [times.get_next(datetime).astimezone(timezone.utc) for _ in range(n_times)]
        return " ".join(time.strftime("%Y-%m-%dT%H:%MZ") for time in found)
    except CroniterBadDateError:
        return "never"
    except ValueError:
        return "refused"


def row(line):
    if line.startswith("#"):
        return line
    zone, pattern, since, known = line.split(" | ")
    return " | ".join([zone, pattern, since, answer(zone, pattern, since, len(known.split()))])


FILE.write_text("".join(row(line) + "\n" for line in FILE.read_text().splitlines()))
