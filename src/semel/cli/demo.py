"""`semel demo`: an exactly-once pipeline on Spark, killed on purpose (see `semel.demo.show`)."""

import argparse
from importlib.util import find_spec

from semel.cli.commands import CommandTable, Option, whole
from semel.cli.exits import Exit, usage


def run(arguments: argparse.Namespace) -> int:
    if find_spec("pyspark") is None:
        raise usage("the demo runs on Spark: pip install 'semel[spark]'")
    from semel.demo.show import show
    from semel.errors import NoJavaError

    try:
        good = show(arguments.orders, compare=not arguments.alone)
    except NoJavaError as problem:
        raise usage(str(problem)) from None
    return Exit.DONE if good else Exit.FAILED


COMMAND = CommandTable(
    run=run,
    options=(
        Option("--orders", "how many orders to send through", value="NUMBER", parse=whole(1),
               default=100_000),
        Option("--alone", "without Spark's usual sink beside ours"),
    ),
)  # fmt: skip
