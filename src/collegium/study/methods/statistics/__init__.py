"""Studies that ask: questions about the private table are answered with noise."""
