"""Tables in databases: where they lie, and what is asked of them there."""
