"""People, how much each of them weighs in a sum, and the noise: what questions and synthetic tables share."""
