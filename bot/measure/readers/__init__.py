"""Every format that a training script may write; one file each, found by listing this folder."""
