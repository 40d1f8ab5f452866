"""The tools that Trellis itself offers a model, as values. Pure."""
