"""HTML, SVG, plots, tables and Markdown: one page skeleton and one style for reports, pictures and cards."""
