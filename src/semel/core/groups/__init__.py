"""The group coordinator: its records, its state, and decisions by kind of group.

`classic` groups have a leader among their members; in `consumer` groups (KIP-848) the broker
assigns; `migration` is the way between the two; `offsets` are committed by either.
"""
