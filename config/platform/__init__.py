"""The installation as its owner sees it, as pages and over REST."""
