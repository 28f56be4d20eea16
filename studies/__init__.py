"""The studies behind the tables and pictures of the paper and of our claims: `python -m studies` lists them."""
