"""The command `semel`: one module per command, beside what they share.

Shared are `commands` (what a command is), `connecting`, `exits`, `lines`, `places`, `printing` and
`record_format`.
"""
