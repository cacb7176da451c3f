"""Output for people: tables, pictures, the HTML page, traces."""
