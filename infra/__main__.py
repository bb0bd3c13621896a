"""The entry of the plugin: what a language host starts for `pulumi package add` and for each `up` of a program that uses components."""

from components.hosting.host import serve
from infra.platforms import PLATFORMS

if __name__ == "__main__":
    serve(PLATFORMS)
