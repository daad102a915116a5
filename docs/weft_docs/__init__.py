"""The book: pages of reference made from the program, and links that resolve."""
