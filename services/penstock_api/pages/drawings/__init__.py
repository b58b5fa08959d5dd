"""The geometry of drawings. It is pure: templates make SVG of it."""
