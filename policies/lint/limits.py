"""How much of a file is read: every bound that keeps hostile or merely huge input from taking the machine."""

from __future__ import annotations

from typing import Final

FILE_BYTES: Final = 64 * 1024 * 1024
"""The longest file that is read. A rendering of several hundred objects has a few MiB."""

FILE_DOCUMENTS: Final = 50_000
"""The most documents of one file; with four times as many separators it is not read at all."""

FILE_VALUES: Final = 2_000_000
"""The most values of one file; 64 MiB of ordinary YAML have about so many, and they take about half a GiB."""

DOCUMENT_BYTES: Final = 16 * 1024 * 1024
"""The longest document. The API server takes no object over 3 MiB; a List that kubectl prints may be longer."""

NODES: Final = 500_000
"""The most values in one document, those that aliases repeat counted as often as they are repeated."""

DEPTH: Final = 100
"""The deepest nesting of lists and mappings. A schema within a CustomResourceDefinition has about 50."""

DUPLICATES_TOLD: Final = 20
"""How many duplicate keys of one document are findings of their own."""
