"""Where the lines and boxes of drawings go. Pure: templates make SVG of it."""
