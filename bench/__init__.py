"""What the product adds to the floor, measured as ratios within one run."""
