"""Stops an idle notebook. Runs as text inside the notebook's pod, so it can only use Python's standard library.

It stops the notebook when all kernels and terminals have been idle long enough, when the run limit is over, and every night. It scales the
notebook's Deployment to zero. If it has no Deployment, it shuts down the server, which completes the server's Job. The server's own last
activity is not enough: an open tab of JupyterLab polls all the time, which counts as activity (jupyterlab issue 19796).
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
    """Return the time of the last activity of a person or of a program, in seconds since 1970. A busy kernel is active now."""
    times = [started]
    for each in (*kernels, *terminals):
        # Before Python 3.11, fromisoformat did not accept Z.
        active = datetime.fromisoformat(each["last_activity"].replace("Z", "+00:00")).timestamp()  # noqa: FURB162
        times.append(now if each.get("execution_state") == "busy" else active)
    return max(times)


def next_night(started: float, time_of_day: str) -> float:
    """Return the first time after `started` at which it is `time_of_day` (such as 20:00) in UTC, in seconds since 1970."""
    hour, minute = (int(part) for part in time_of_day.split(":"))
    since = datetime.fromtimestamp(started, timezone.utc)  # noqa: UP017 -- images may have an older Python
    night = since.replace(hour=hour, minute=minute, second=0, microsecond=0)
    return (night if night > since else night + timedelta(days=1)).timestamp()


def reason_to_stop(environment: dict[str, str], active: float, started: float, now: float) -> str:
    """Return the reason to stop the notebook, or an empty text. Limits that the environment does not set give no reason."""
    if now - active >= float(environment[IDLE_VARIABLE]):
        return f"it has been idle for {now - active:.0f} s"
    if now - started >= float(environment.get(LIMIT_VARIABLE, "inf")):
        return f"it has run for {now - started:.0f} s, which is its limit"
    night = environment.get(NIGHT_VARIABLE, "")
    return f"it is {night} UTC" if night and now >= next_night(started, night) else ""


def stop(environment: dict[str, str]) -> None:
    """Scale the Deployment to zero, or shut down the server if there is no Deployment. Raises OSError if this is rejected."""
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
    """Return the server's answer. Raises OSError if there is none, ValueError if it is not JSON."""
    url = environment.get(NOTEBOOK_VARIABLE, "http://127.0.0.1:8888") + path
    headers = {"Authorization": f"token {environment.get(TOKEN_VARIABLE, '')}"}
    request = urllib.request.Request(url, method=method, headers=headers, data=b"" if method == "POST" else None)  # noqa: S310 -- its own pod
    with urllib.request.urlopen(request, timeout=10) as answer:  # noqa: S310 -- likewise
        return json.loads(answer.read() or b"null")


def look(environment: dict[str, str], active: float, started: float) -> float:
    """Check once, stop the notebook if there is a reason, and return the time of its last known activity."""
    now = time.time()
    try:
        answers = [ask_notebook(environment, "GET", path) for path in ("/api/kernels", "/api/terminals")]
        active = max(active, last_activity(answers[0], answers[1], started, now))
    except (OSError, ValueError, KeyError) as error:
        # A server that never answers still occupies its GPU, so its last known activity counts.
        print(f"the notebook does not say what it does: {error}", flush=True)  # noqa: T201 -- the log of its container
    if reason := reason_to_stop(environment, active, started, now):
        print(f"stopping the notebook: {reason}", flush=True)  # noqa: T201 -- likewise
        try:
            stop(environment)
        except OSError as error:
            print(f"it could not be stopped, next try in {ROUND_SECONDS:.0f} s: {error}", flush=True)  # noqa: T201 -- likewise
    return active


def main() -> None:
    """Check until stopped."""
    environment = dict(os.environ)
    # The first process of a container ignores the signal by default, and the pod would wait for the whole grace period.
    signal.signal(signal.SIGTERM, _end)
    started = active = time.time()
    while True:
        active = look(environment, active, started)
        time.sleep(ROUND_SECONDS)


def _end(_number: int, _frame: object) -> None:
    sys.exit(0)


if __name__ == "__main__":
    main()
