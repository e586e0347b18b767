//! Checkpoints: a manifest that is replaced atomically, and one file of rows a partition.
