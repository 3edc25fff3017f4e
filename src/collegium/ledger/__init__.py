"""One durable account per person, over all that is ever learnt from their records."""
