"""The producer: records become batches, and batches are sent, once each."""
