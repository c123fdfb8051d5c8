"""What is measured of a trace."""
