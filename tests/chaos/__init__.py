"""What holds when processes die: crashes at every named place, and the history checker."""
