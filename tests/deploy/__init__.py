"""What is handed to people who run Trellis on many machines: image, compose file, chart, units."""
