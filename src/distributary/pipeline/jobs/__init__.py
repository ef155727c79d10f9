"""Jobs: tables in, tables out, and a report."""
