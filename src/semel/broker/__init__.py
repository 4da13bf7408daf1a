"""The broker: the server, the way of a request to its handler, and what handlers are given.

`api` has one module per Kafka API. The parts that handlers ask are in `coordinators`, `partitions`,
`catalog`, `settings` and `access`; `metrics` looks at all of them.
"""
