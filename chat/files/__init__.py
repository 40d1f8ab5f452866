"""What files are: their kinds, found in their content, their names, their character sets, and archives of them."""
