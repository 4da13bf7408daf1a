"""`semel demo`: an exactly-once pipeline on Spark, killed on purpose (see `semel.demo.show`)."""

from semel.demo.show import add_arguments, run

__all__ = ["add_arguments", "run"]
