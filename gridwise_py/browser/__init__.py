"""The page that measures a browser's GPU: plans, data and expected results for it, and the page itself."""
