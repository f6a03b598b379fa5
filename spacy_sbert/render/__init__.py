"""HTML, SVG, plots, tables and Markdown, in one style for reports, pictures and cards."""
