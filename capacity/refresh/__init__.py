"""Fresh prices: what the clouds' own lists say, read into rows of a price file. Pure: the clouds are asked elsewhere."""
