"""Faults on demand, and the watch over requests that lets them strike."""
