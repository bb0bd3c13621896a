"""Fixtures for all tests, by what they need: nothing, Pulumi's mocks, a running lab."""

pytest_plugins = ["mock_fixtures", "lab_fixtures"]
