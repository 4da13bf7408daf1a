"""A simulated world: the real decisions, with everything around them simulated from one seed.

The coordinator and the partitions are the product's own machines over logs of real bytes. The
clients, the network, the disks and the clock are simulated: answers get lost or come late, disks
forget what was not synced, brokers crash between any two steps. A failing run is a number.
"""
