"""Ji's tables of active assessment (thesis, chapter 3): ours beside the published ones."""
