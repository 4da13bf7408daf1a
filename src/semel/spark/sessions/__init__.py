"""Spark sessions that work out of the box: a Java, this Python, and short-lived workers."""
