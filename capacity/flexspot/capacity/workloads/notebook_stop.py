"""Ends a notebook in which nobody works. Runs as text inside its pod, so it knows Python's standard library alone.

It ends it when all kernels and terminals have been idle for so long, when the run limit is over, and every night: by scaling its Deployment
to zero, or, where it is told of none, by shutting down the server, whose Job is then complete. What the server calls its own last activity
is not enough: an open tab of JupyterLab asks it for news all the time, which counts (jupyterlab issue 19796).
"""

from __future__ import annotations

import json
import os
import signal
import ssl
import sys
import time
import urllib.request
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

NOTEBOOK_VARIABLE, TOKEN_VARIABLE = "FLEXSPOT_NOTEBOOK_URL", "JUPYTER_TOKEN"
IDLE_VARIABLE, LIMIT_VARIABLE = "FLEXSPOT_IDLE_TIMEOUT_SECONDS", "FLEXSPOT_RUN_LIMIT_SECONDS"
NIGHT_VARIABLE, SCALE_VARIABLE = "FLEXSPOT_NIGHTLY_STOP_UTC", "FLEXSPOT_SCALE_PATH"
CREDENTIALS_VARIABLE = "FLEXSPOT_KUBERNETES_CREDENTIALS"

ROUND_SECONDS = 30.0


def last_activity(kernels: list[dict[str, Any]], terminals: list[dict[str, Any]], started: float, now: float) -> float:
    """When somebody, or something that somebody started, last worked; seconds since 1970. A busy kernel works now."""
    times = [started]
    for each in (*kernels, *terminals):
        # Before Python 3.11, Z was no time zone.
        told = datetime.fromisoformat(each["last_activity"].replace("Z", "+00:00")).timestamp()  # noqa: FURB162
        times.append(now if each.get("execution_state") == "busy" else told)
    return max(times)


def next_night(started: float, time_of_day: str) -> float:
    """The first time after `started` at which it is `time_of_day` (such as 20:00) in UTC; seconds since 1970."""
    hour, minute = (int(part) for part in time_of_day.split(":"))
    begun = datetime.fromtimestamp(started, timezone.utc)  # noqa: UP017 -- images may have an older Python
    night = begun.replace(hour=hour, minute=minute, second=0, microsecond=0)
    return (night if night > begun else night + timedelta(days=1)).timestamp()


def reason_to_stop(environment: dict[str, str], active: float, started: float, now: float) -> str:
    """Why the notebook should end; empty while it should not. What is left out of the environment is no reason."""
    if now - active >= float(environment[IDLE_VARIABLE]):
        return f"nobody has worked in it for {now - active:.0f} s"
    if now - started >= float(environment.get(LIMIT_VARIABLE, "inf")):
        return f"it has run for {now - started:.0f} s, which is its limit"
    night = environment.get(NIGHT_VARIABLE, "")
    return f"it is {night} UTC" if night and now >= next_night(started, night) else ""


def stop(environment: dict[str, str]) -> None:
    """Scales the Deployment to zero, or ends the server where there is no Deployment. Raises OSError when that is refused."""
    if SCALE_VARIABLE not in environment:
        ask_notebook(environment, "POST", "/api/shutdown")
        return
    folder = Path(environment[CREDENTIALS_VARIABLE])
    host = environment["KUBERNETES_SERVICE_HOST"]
    address = f"[{host}]" if ":" in host else host
    request = urllib.request.Request(
        f"https://{address}:{environment['KUBERNETES_SERVICE_PORT']}{environment[SCALE_VARIABLE]}",
        method="PATCH",
        data=b'{"spec":{"replicas":0}}',
        headers={"Authorization": f"Bearer {(folder / 'token').read_text()}", "Content-Type": "application/merge-patch+json"},
    )
    trust = ssl.create_default_context(cafile=str(folder / "ca.crt"))
    urllib.request.urlopen(request, timeout=30, context=trust).close()  # noqa: S310 -- likewise


def ask_notebook(environment: dict[str, str], method: str, path: str) -> Any:
    """What the server answers. Raises OSError where it does not, ValueError for what is no JSON."""
    url = environment.get(NOTEBOOK_VARIABLE, "http://127.0.0.1:8888") + path
    headers = {"Authorization": f"token {environment.get(TOKEN_VARIABLE, '')}"}
    request = urllib.request.Request(url, method=method, headers=headers, data=b"" if method == "POST" else None)  # noqa: S310 -- its own pod
    with urllib.request.urlopen(request, timeout=10) as answer:  # noqa: S310 -- likewise
        return json.loads(answer.read() or b"null")


def look(environment: dict[str, str], active: float, started: float) -> float:
    """One round: the last known activity. Stops the notebook when there is a reason to."""
    now = time.time()
    try:
        told = [ask_notebook(environment, "GET", path) for path in ("/api/kernels", "/api/terminals")]
        active = max(active, last_activity(told[0], told[1], started, now))
    except (OSError, ValueError, KeyError) as error:
        # A server that never answers keeps its GPU as well: what it did last is what counts.
        print(f"the notebook does not say what it does: {error}", flush=True)  # noqa: T201 -- the log of its container
    if reason := reason_to_stop(environment, active, started, now):
        print(f"stopping the notebook: {reason}", flush=True)  # noqa: T201 -- likewise
        try:
            stop(environment)
        except OSError as error:
            print(f"it could not be stopped, next try in {ROUND_SECONDS:.0f} s: {error}", flush=True)  # noqa: T201 -- likewise
    return active


def main() -> None:
    """Watches until it is stopped."""
    environment = dict(os.environ)
    # The first process of a container ignores the signal otherwise, and the pod would wait for the whole grace period.
    signal.signal(signal.SIGTERM, _end)
    started = active = time.time()
    while True:
        active = look(environment, active, started)
        time.sleep(ROUND_SECONDS)


def _end(_number: int, _frame: object) -> None:
    sys.exit(0)


if __name__ == "__main__":
    main()
