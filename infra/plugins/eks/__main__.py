"""Plugin that a language host starts for `pulumi package add` and for each `up` of a program that uses components."""

from flexspot.components.hosting.plugin import serve
from flexspot.infra.loading import collect_rarely

collect_rarely()
serve("eks")
