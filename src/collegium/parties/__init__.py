"""Several parties, one noisy sum: nobody shows another what it adds, and noise is in the sum once."""
