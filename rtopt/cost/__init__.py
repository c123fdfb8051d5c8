"""What a step costs."""
