"""A program that knows nothing of Semel but the name of a format: python by_name.py '{…}'."""

import json
import sys

from pyspark.sql import SparkSession

plan = json.loads(sys.argv[1])
builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
builder = builder.config("spark.driver.host", "127.0.0.1")
spark = builder.config("spark.driver.bindAddress", "127.0.0.1").getOrCreate()
broker = {"kafka.bootstrap.servers": plan["bootstrap"]}
rows = spark.range(100).selectExpr("string(id) AS key", "string(id) AS value")
rows.write.format("semel").options(**broker, topic=plan["first"]).mode("append").save()
stream = spark.readStream.format("semel").options(**broker, subscribe=plan["first"]).load()
query = (
    stream.select("key", "value")
    .writeStream.format("semel")
    .options(**broker, topic=plan["second"], checkpointLocation=plan["checkpoint"])
    .trigger(availableNow=True)
    .start()
)
query.awaitTermination()
spark.stop()
