"""What `pulumi up` runs; the program is in infra/program.py."""

from infra.collector import collect_rarely
from infra.program import main

collect_rarely()
main()
