"""Connections: the broker's side (`listener`, `connection`) and the client's (`client_*`)."""
