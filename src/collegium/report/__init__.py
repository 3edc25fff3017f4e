"""The self-contained page about a study."""
