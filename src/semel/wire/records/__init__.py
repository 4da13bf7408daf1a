"""What coordinators keep in internal topics, and what members of a group tell each other.

Written in the notation of messages. `API_KEY` is the type that a coordinator's key begins with.
"""
