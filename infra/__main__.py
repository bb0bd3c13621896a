"""The entry of the plugin: what a language host starts for `pulumi package add` and for each `up` of a program that uses components."""

from components.hosting.plugin import serve
from infra.collector import collect_rarely

if __name__ == "__main__":
    collect_rarely()
    serve()
