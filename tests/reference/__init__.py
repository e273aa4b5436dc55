"""A slow, literal transcription of the paper, against which the fast text is checked."""
