"""`python -m modelplane`."""

from modelplane.cli import main

main()
