"""Metrics for Prometheus and health checks, only where a port for them is set.

Transactions are counted always, in plain numbers. Requests are counted by wrapping the routes of
the dispatcher, which is done only where the page is asked for: without it nothing is slower. All
else is looked up when somebody fetches the page. `prometheus-client` is imported then.
"""

from semel.broker.metrics.page import Metrics as Metrics
