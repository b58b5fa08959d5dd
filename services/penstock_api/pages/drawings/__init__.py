"""The geometry of drawings, as pure functions. Templates render it as SVG."""
