"""The broker's decisions, pure: without clock, socket, disk, thread or dice.

`transactions` and `groups` are the coordinators, in the shape of `machine`; `partition` is what a
partition knows beside its bytes; `access` says who may do what.
"""
