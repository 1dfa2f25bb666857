"""Other ways to learn a constraint, to compare with."""
