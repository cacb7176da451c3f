"""Results for people: tables, pictures, the page, traces."""
