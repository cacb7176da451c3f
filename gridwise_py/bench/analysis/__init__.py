"""What results say: comparisons, remarks, rooflines, lines over n. Data, not yet text or pictures."""
