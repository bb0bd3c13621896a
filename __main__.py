"""What `pulumi up` runs; the program is in infra/program.py."""

from infra.program import main

main()
