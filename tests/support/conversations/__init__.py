"""Scripted exchanges with a broker that can be compared with another broker's."""
