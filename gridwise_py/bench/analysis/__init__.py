"""Analysis of results, as data: comparisons, remarks, rooflines, lines over n."""
