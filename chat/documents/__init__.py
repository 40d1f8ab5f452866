"""Text out of documents, and pictures made fit for models."""
