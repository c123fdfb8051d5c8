"""SVG figures; matplotlib is imported in this folder only."""
