"""The sink as a format: `df.writeStream.format("semel")` and `df.write.format("semel")`."""
