"""Fixtures for all tests, by what they need: a copy of the project, Pulumi's mocks, a running lab."""

import signal

pytest_plugins = ["checkout_fixtures", "gke_deployment_fixtures", "mock_fixtures", "lab_fixtures"]

# A shell that runs tests in the background has them ignore Ctrl-C, and so would every program that they start and then interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
