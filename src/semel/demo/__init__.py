"""What `semel demo` runs: a Spark job, and the count of what it wrote."""
