"""Program that `pulumi up` runs here, as in any project: the platform of the stack file."""

from flexspot.program import main

main()
