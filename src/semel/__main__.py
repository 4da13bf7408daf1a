"""`python -m semel` is the command `semel`."""

from semel.cli.__main__ import main

raise SystemExit(main())
